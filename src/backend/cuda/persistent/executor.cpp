#include "backend/cuda/persistent/executor.h"

#include <utility>

#include "backend/cuda/persistent/token_runner.h"

namespace godwit::cuda::persistent {
namespace {

// Left to what the kernel keeps in static shared memory.
constexpr uint32_t kStaticBytes = 2048;
// Of an L2 of 60 MB; the rest is for what streams through it.
constexpr uint64_t kKeepShare = 70;  // per cent

Result<Schedule> schedule_for(const program::Program& program, const DeviceFacts& device) {
  if (device.capability() != 90) {
    return fail("the persistent kernel is built for sm_90, this is sm_{}", device.capability());
  }
  return make_schedule(
      program, {.n_ctas = static_cast<uint32_t>(device.n_multiprocessors),
                .shared_bytes = static_cast<uint32_t>(device.max_shared_bytes) - kStaticBytes,
                .keep_bytes = device.l2_bytes * kKeepShare / 100});
}

class State final : public ExecutorState {
 public:
  explicit State(TokenRunner made) : runner(std::move(made)) {}
  TokenRunner runner;
};

class PersistentExecutor final : public DecodeExecutor {
 public:
  PersistentExecutor(const program::Program& program, std::unique_ptr<Schedule> schedule,
                     PackedWeights weights, cudaStream_t stream)
      : program_(program),
        schedule_(std::move(schedule)),
        weights_(std::move(weights)),
        stream_(stream) {}

  std::string_view name() const override { return "persistent"; }

  Result<std::unique_ptr<ExecutorState>> attach(const Context& context) override {
    for (const KvCache& kv : context.kvs) {
      if (kv.layout.order != KvLayout::Order::kOperand) {
        return fail("K of {} and V of {}; the persistent kernel wants both F16 or both BF16",
                    tensor_type_name(kv.k_type), tensor_type_name(kv.v_type));
      }
    }
    Result<TokenRunner> runner = TokenRunner::create(
        {.schedule = *schedule_,
         .weights = weights_,
         .kv_type = context.kvs.front().k_type,
         .kv =
             [&](program::KvRef ref) {
               const KvCache& kv = context.kvs[ref.value];
               return KvPlace{kv.data, kv.layout.head_bytes()};
             },
         .rope =
             [&](program::RopeRef ref) {
               return reinterpret_cast<const float*>(context.ropes[ref.value].data);
             },
         .logits = context.buffers[program_.logits.value].data,
         .tuning = {}},
        stream_);
    if (!runner) return fail(std::move(runner).error());
    return std::make_unique<State>(std::move(*runner));
  }

  bool runs(program::StepRange steps) const override {
    return steps.begin == 0 && steps.end == program_.main.size();
  }

  Status run(Context&, ExecutorState* state, const program::Row& row, program::StepRange) override {
    return static_cast<State*>(state)->runner.run(
        {.id = row.token.value, .position = static_cast<uint32_t>(row.position.value)}, stream_);
  }

  Status after_run(const Context&, ExecutorState* state) override {
    return static_cast<State*>(state)->runner.check();
  }

 private:
  const program::Program& program_;
  std::unique_ptr<Schedule> schedule_;  // contexts refer to it
  PackedWeights weights_;
  cudaStream_t stream_;
};

}  // namespace

uint64_t weight_bytes(const program::Program& program, const DeviceFacts& device) {
  const Result<Schedule> schedule = schedule_for(program, device);
  return schedule ? PackedWeights::need(*schedule) : 0;
}

Result<std::unique_ptr<DecodeExecutor>> load(const LoadSettings& settings) {
  Result<Schedule> schedule = schedule_for(settings.program, settings.device);
  if (!schedule) return fail(std::move(schedule).error());
  const DeviceWeights& weights = settings.weights;
  const WeightSource source{
      .matrix =
          [&](const program::WeightRef& ref) {
            const DeviceMatrix& m = weights.matrix(ref);
            return SourceMatrix{m.data, m.type, m.rows, m.stride};
          },
      .vector = [&](const program::WeightRef& ref) { return weights.vector(ref); }};
  auto owned = std::make_unique<Schedule>(std::move(*schedule));
  Result<PackedWeights> packed = PackedWeights::pack(*owned, source, settings.stream);
  if (!packed) return fail(std::move(packed).error());
  return std::make_unique<PersistentExecutor>(settings.program, std::move(owned),
                                              std::move(*packed), settings.stream);
}

}  // namespace godwit::cuda::persistent
