#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "backend/cuda/context.h"
#include "backend/cuda/device.h"
#include "backend/cuda/persistent/executor.h"
#include "backend/cuda/prefill.h"
#include "backend/cuda/state.h"
#include "backend/cuda/stepwise.h"
#include "backend/cuda/weights.h"
#include "base/check.h"
#include "base/log.h"

namespace godwit::cuda {
namespace {

using backend::ContextId;
using backend::ContextSettings;
using program::BufferId;
using program::Program;
using program::Row;

// For code that is loaded when it first runs, cuBLASLt's above all.
constexpr uint64_t kReservedBytes = uint64_t{512} << 20;

Status check_kv_types(const ContextSettings& settings) {
  for (const TensorType type : {settings.k_type, settings.v_type}) {
    if (type != TensorType::kF32 && type != TensorType::kF16 && type != TensorType::kBF16) {
      return fail("cuda: KV type {} is not supported; F32, F16 and BF16 are",
                  tensor_type_name(type));
    }
  }
  return {};
}

// For what cannot go on: the card failed, or we are wrong.
void require(const Status& status) {
  if (!status) check(false, status.error().message);
}

class CudaBackend final : public backend::Backend {
 public:
  // What times the steps of a run on the stream.
  struct Marks {
    Event begin;
    Event end;
  };

  CudaBackend(const CudaSettings& settings, DeviceFacts device, Stream stream, Marks marks)
      : settings_(settings),
        device_(std::move(device)),
        stream_(std::move(stream)),
        marks_(std::move(marks)) {}

  std::string_view name() const override { return "cuda"; }

  std::string describe() const override {
    return fmt::format(
        "cuda, {}, {} SMs, sm_{}, executor={}, prefill={}", device_.name, device_.n_multiprocessors,
        device_.capability(), executor_text(),
        product_ != nullptr ? "cuBLASLt" : fmt::format("row by row ({})", no_product_));
  }

  Status supports(const program::Step& step) const override {
    return stepwise_supports(step.operation, device_.max_shared_bytes);
  }

  Result<backend::MemoryNeed> memory_need(const Program& program,
                                          const ContextSettings& settings) const override {
    if (Status s = check_kv_types(settings); !s) return fail(s.error());
    backend::MemoryNeed need = Context::need(program, settings);
    need.weight_bytes = DeviceWeights::need(program);
    if (settings_.executor != ExecutorChoice::kStepwise) {
      need.weight_bytes += persistent::weight_bytes(program, device_);
    }
    return need;
  }

  std::optional<uint64_t> available_bytes() const override {
    size_t free = 0;
    size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return std::nullopt;
    return free > kReservedBytes ? free - kReservedBytes : 0;
  }

  std::optional<double> read_bandwidth_gbps() const override {
    const Result<double> measured = measure_bandwidth_gbps(stream_.get());
    return measured ? *measured : 0.0;
  }

  Status load(const Program& program, std::span<const std::span<const std::byte>> weights,
              const backend::Progress& progress) override {
    program_ = &program;
    Result<DeviceWeights> uploaded =
        DeviceWeights::upload(program, weights, stream_.get(), progress);
    if (!uploaded) return fail(std::move(uploaded).error());
    weights_ = std::move(*uploaded);
    // Cards before 9.0 have no launch that waits on the device.
    const Overlap overlap = device_.major >= 9 ? settings_.overlap : Overlap::kNone;
    stepwise_ = std::make_unique<StepwiseExecutor>(
        program, weights_,
        StepwiseSettings{.queue = {.stream = stream_.get(), .overlap = overlap},
                         .capture = settings_.capture,
                         .n_multiprocessors = device_.n_multiprocessors,
                         .max_shared_bytes = device_.max_shared_bytes});
    open_prefill();
    return choose_executor();
  }

  Result<ContextId> make_context(const ContextSettings& settings) override {
    if (Status s = check_kv_types(settings); !s) return fail(s.error());
    Result<std::unique_ptr<Context>> context = Context::create(*program_, settings);
    if (!context) return fail(std::move(context).error());
    Result<std::unique_ptr<ExecutorState>> own = stepwise_->attach(**context);
    if (!own) return fail(std::move(own).error());
    (*context)->stepwise = std::move(*own);
    if (Status s = attach_persistent(**context); !s) return fail(s.error());
    const ContextId id{next_context_++};
    contexts_.emplace(id.value, std::move(*context));
    return id;
  }

  void release_context(ContextId context) override { contexts_.erase(context.value); }

  Status run(ContextId id, std::span<const Row> rows, program::StepRange steps) override {
    Context& context = find(id);
    check_rows(context, rows);
    if (Status s = send_inputs(context, rows); !s) return s;
    const bool persistent = rows.size() == 1 && context.runs_persistent && persistent_->runs(steps);
    if (Status s = mark(marks_.begin); !s) return s;
    const Status ran = persistent
                           ? persistent_->run(context, context.persistent.get(), rows[0], steps)
                           : run_stepwise(context, rows, steps);
    if (!ran) return ran;
    if (Status s = mark(marks_.end); !s) return s;
    if (Status s = fetch_logits(context); !s) return s;
    if (Status s = wait("running steps"); !s) return s;
    return persistent ? persistent_->after_run(context, context.persistent.get()) : Status{};
  }

  std::optional<double> device_us(ContextId) const override {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, marks_.begin.get(), marks_.end.get()) != cudaSuccess)
      return std::nullopt;
    return 1e3 * static_cast<double>(ms);
  }

  bool runs_parts_alike(ContextId id) const override {
    return !find(id).runs_persistent || persistent_->runs({.begin = 0, .end = 1});
  }

  // Single rows are the persistent kernel's, groups the stepwise executor's.
  bool runs_groups_alike(ContextId id) const override { return !find(id).runs_persistent; }

  void read(ContextId id, BufferId buffer, std::span<float> out) const override {
    const BufferView& view = find(id).buffers[buffer.value];
    require(
        status_of(cudaMemcpy2DAsync(out.data(), view.width * sizeof(float), view.data,
                                    view.stride * sizeof(float), view.width * sizeof(float),
                                    out.size() / view.width, cudaMemcpyDeviceToHost, stream_.get()),
                  "reading a buffer"));
    require(wait("reading a buffer"));
  }

  void write(ContextId id, BufferId buffer, std::span<const float> in) override {
    const BufferView& view = find(id).buffers[buffer.value];
    require(
        status_of(cudaMemcpy2DAsync(view.data, view.stride * sizeof(float), in.data(),
                                    view.width * sizeof(float), view.width * sizeof(float),
                                    in.size() / view.width, cudaMemcpyHostToDevice, stream_.get()),
                  "writing a buffer"));
    require(wait("writing a buffer"));
  }

  std::span<const float> logits(ContextId id) const override {
    const Context& context = find(id);
    return {context.host_logits, context.n_logit_rows * program_->n_vocab};
  }

  backend::StateShape state_shape(ContextId id) const override {
    return cuda::state_shape(*program_, find(id));
  }

  void export_state(ContextId id, backend::PositionRange range,
                    backend::StateTarget to) const override {
    const Context& context = find(id);
    check_range(context, range, to.positions.size(), to.fixed.size());
    require(cuda::export_state(*program_, context, range, to, stream_.get()));
  }

  void import_state(ContextId id, backend::PositionRange range,
                    backend::StateSource from) override {
    Context& context = find(id);
    check_range(context, range, from.positions.size(), from.fixed.size());
    require(cuda::import_state(*program_, context, range, from, stream_.get()));
  }

 private:
  std::string executor_text() const {
    if (persistent_ != nullptr) return std::string(persistent_->name());
    return reason_.empty() ? "stepwise" : fmt::format("stepwise ({})", reason_);
  }

  Status mark(const Event& event) {
    return status_of(cudaEventRecord(event.get(), stream_.get()), "timing steps");
  }

  Status wait(std::string_view what) const {
    return status_of(cudaStreamSynchronize(stream_.get()), what);
  }

  void open_prefill() {
    if (settings_.prefill == PrefillChoice::kRows) {
      no_product_ = "asked for";
      return;
    }
    Result<std::unique_ptr<MatrixProduct>> product = MatrixProduct::open();
    if (!product) {
      no_product_ = product.error().message;
      log::warn(fmt::format("cuda: prompts run row by row: {}", no_product_));
      return;
    }
    product_ = std::move(*product);
    prefill_ = std::make_unique<Prefill>(*program_, weights_, *stepwise_, *product_,
                                         Queue{.stream = stream_.get()});
  }

  // Persistent where it can be, or as asked.
  Status choose_executor() {
    if (settings_.executor == ExecutorChoice::kStepwise) {
      reason_ = "asked for";
      return {};
    }
    Result<std::unique_ptr<DecodeExecutor>> executor = persistent::load(
        {.program = *program_, .weights = weights_, .device = device_, .stream = stream_.get()});
    if (executor) {
      persistent_ = std::move(*executor);
      return {};
    }
    if (settings_.executor == ExecutorChoice::kPersistent) return fail(executor.error());
    reason_ = executor.error().message;
    log::info(fmt::format("cuda: decoding step by step: {}", reason_));
    return {};
  }

  Status attach_persistent(Context& context) {
    if (persistent_ == nullptr) return {};
    Result<std::unique_ptr<ExecutorState>> state = persistent_->attach(context);
    if (state) {
      context.persistent = std::move(*state);
      context.runs_persistent = true;
      return {};
    }
    if (settings_.executor == ExecutorChoice::kPersistent) return fail(state.error());
    log::info(fmt::format("cuda: this context decodes step by step: {}", state.error().message));
    return {};
  }

  Status send_inputs(Context& context, std::span<const Row> rows) {
    context.n_rows = rows.size();
    context.n_logit_rows = 0;
    for (size_t t = 0; t < rows.size(); ++t) {
      RowInput& input = context.host_inputs[t];
      input = {.token = rows[t].token.value, .position = rows[t].position.value};
      if (!rows[t].wants_logits) continue;
      input.logit_row = static_cast<int32_t>(context.n_logit_rows);
      context.host_logit_rows[context.n_logit_rows++] = static_cast<uint32_t>(t);
    }
    if (Status s = status_of(
            cudaMemcpyAsync(context.inputs, context.host_inputs, rows.size() * sizeof(RowInput),
                            cudaMemcpyHostToDevice, stream_.get()),
            "sending rows");
        !s || context.n_logit_rows == 0) {
      return s;
    }
    return status_of(cudaMemcpyAsync(context.logit_rows, context.host_logit_rows,
                                     context.n_logit_rows * sizeof(uint32_t),
                                     cudaMemcpyHostToDevice, stream_.get()),
                     "sending rows");
  }

  // Whole chunks, which begin at multiples of their length, are computed as one; what is left of a
  // prompt, drafts and single tokens row by row, to the same bits however they are grouped.
  bool is_chunk(const Context& context, std::span<const Row> rows) const {
    const size_t chunk = context.settings.max_rows;
    return prefill_ != nullptr && chunk >= kMinChunkRows && rows.size() == chunk &&
           static_cast<size_t>(rows.front().position.value) % chunk == 0;
  }

  Status run_stepwise(Context& context, std::span<const Row> rows, program::StepRange steps) {
    if (rows.size() == 1) return stepwise_->run(context, context.stepwise.get(), rows[0], steps);
    const auto end_of = [](const Row& row) {
      return static_cast<uint64_t>(row.position.value) + 1;
    };
    if (is_chunk(context, rows)) return prefill_->run(context, end_of(rows.back()), steps);
    size_t logit_first = 0;
    for (size_t first = 0; first < rows.size(); first += kGroupRows) {
      const auto part = rows.subspan(first, std::min(kGroupRows, rows.size() - first));
      const auto n = static_cast<size_t>(
          std::ranges::count_if(part, [](const Row& row) { return row.wants_logits; }));
      const Status s = stepwise_->run_group(context,
                                            {.first = first,
                                             .n_rows = part.size(),
                                             .logit_first = logit_first,
                                             .n_logits = n,
                                             .n_positions = end_of(part.back())},
                                            steps);
      if (!s) return s;
      logit_first += n;
    }
    return {};
  }

  Status fetch_logits(Context& context) {
    if (context.n_logit_rows == 0) return {};
    const BufferView& view = context.buffers[program_->logits.value];
    return status_of(cudaMemcpyAsync(context.host_logits, view.data,
                                     context.n_logit_rows * view.width * sizeof(float),
                                     cudaMemcpyDeviceToHost, stream_.get()),
                     "fetching logits");
  }

  void check_rows(const Context& context, std::span<const Row> rows) const {
    size_t wanting = 0;
    check(!rows.empty() && rows.size() <= context.settings.max_rows,
          "more rows than the context was made for");
    for (size_t t = 0; t < rows.size(); ++t) {
      const Row& row = rows[t];
      wanting += row.wants_logits ? 1 : 0;
      check(row.position.value >= 0 &&
                static_cast<uint64_t>(row.position.value) < context.settings.n_positions,
            "position beyond the context");
      check(t == 0 || row.position.value == rows[t - 1].position.value + 1,
            "positions of a call are not consecutive");
      check(row.token.value >= 0 && static_cast<uint64_t>(row.token.value) < program_->n_vocab,
            "token outside the vocabulary");
    }
    check(wanting <= context.settings.max_logit_rows, "more logits than the context was made for");
  }

  void check_range(const Context& context, backend::PositionRange range, size_t positions,
                   size_t fixed) const {
    check(range.end <= context.settings.n_positions, "state of positions beyond the context");
    check(backend::fits_state(cuda::state_shape(*program_, context), range, positions, fixed),
          "a state of another size");
  }

  Context& find(ContextId id) const {
    const auto it = contexts_.find(id.value);
    check(it != contexts_.end(), "no such context");
    return *it->second;
  }

  CudaSettings settings_;
  DeviceFacts device_;
  Stream stream_;
  Marks marks_;
  const Program* program_ = nullptr;
  DeviceWeights weights_;
  std::unique_ptr<StepwiseExecutor> stepwise_;
  std::unique_ptr<MatrixProduct> product_;  // nullptr: no cuBLASLt
  std::string no_product_;                  // why
  std::unique_ptr<Prefill> prefill_;
  std::unique_ptr<DecodeExecutor> persistent_;  // nullptr: everything runs stepwise
  std::string reason_;                          // why
  std::map<uint32_t, std::unique_ptr<Context>> contexts_;
  uint32_t next_context_ = 0;
};

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_cuda_backend(const CudaSettings& settings) {
  if (const Result<int> n = count_devices(); !n) return fail(n.error());
  Result<DeviceFacts> device = device_facts(0);
  if (!device) return fail(std::move(device).error());
  if (Status s = usable(*device); !s) return fail(s.error());
  Result<Stream> stream = make_stream();
  if (!stream) return fail(std::move(stream).error());
  Result<Event> begin = make_event();
  Result<Event> end = make_event();
  if (!begin || !end) return fail((begin ? end : begin).error());
  return std::make_unique<CudaBackend>(
      settings, std::move(*device), std::move(*stream),
      CudaBackend::Marks{.begin = std::move(*begin), .end = std::move(*end)});
}

Result<std::unique_ptr<backend::Backend>> make_cuda_backend(const backend::BackendSettings&) {
  const Result<CudaSettings> settings = settings_from_environment();
  if (!settings) return fail(settings.error());
  return make_cuda_backend(*settings);
}

}  // namespace godwit::cuda
