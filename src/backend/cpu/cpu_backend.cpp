#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <map>
#include <optional>

#include "backend/cpu/attention_block.h"
#include "backend/cpu/context.h"
#include "backend/cpu/executor.h"
#include "backend/cpu/expert_cache.h"
#include "backend/cpu/kernel_table.h"
#include "backend/cpu/packed_weights.h"
#include "backend/cpu/state.h"
#include "backend/kv_rounding.h"
#include "base/check.h"
#include "program/access.h"

namespace godwit::cpu {
namespace {

using backend::ContextId;
using backend::ContextSettings;
using program::BufferId;
using program::Program;
using program::Row;

Status check_kvs(const Program& program, const ContextSettings& settings) {
  for (const program::Kv& kv : program.kvs) {
    for (const TensorType type : {settings.k_type, settings.v_type}) {
      if (Status s = backend::check_kv(type, kv.head_dim); !s) {
        return fail(Error(s.error()).with("cpu"));
      }
    }
  }
  return {};
}

class CpuBackend final : public backend::Backend {
 public:
  CpuBackend(const backend::BackendSettings& settings, Isa isa, size_t attention_block)
      : settings_(settings),
        pool_(settings.n_threads),
        isa_(isa),
        attention_block_(attention_block) {}

  std::string_view name() const override { return "cpu"; }

  std::string describe() const override {
    return fmt::format("cpu, {} threads, {}, {}{}{}", pool_.size(), isa_name(isa_),
                       processor_name(), planes() == Planes::kOne ? ", 8-bit activations" : "",
                       settings_.repack == backend::Repack::kAtUse ? ", packing at use" : "");
  }

  Status supports(const program::Step& step) const override {
    if (std::holds_alternative<program::Embed>(step.operation)) return {};
    if (const auto* attend = std::get_if<program::Attend>(&step.operation)) {
      if (attend->head_dim % 8 != 0 || attend->head_dim > kMaxHeadDim) {
        return fail("cpu: heads of {} dimensions; expected a multiple of 8, at most {}",
                    attend->head_dim, kMaxHeadDim);
      }
    }
    if (Status s = supports_experts(step.operation); !s) return s;
    for (const program::WeightRef& ref : program::access_of(step.operation).weights) {
      if (ref.rows > 1 && find_matvec_kernel(ref.type, isa_) == nullptr) {
        return fail("cpu: no kernel for type {}", tensor_type_name(ref.type));
      }
    }
    return {};
  }

  Result<backend::MemoryNeed> memory_need(const Program& program,
                                          const ContextSettings& settings) const override {
    if (Status s = check_kvs(program, settings); !s) return fail(s.error());
    const PackedWeights::Placement placement = this->placement(program);
    const Result<uint64_t> weights = PackedWeights::need(program, placement);
    if (!weights) return fail(weights.error());
    const Result<ExpertCache::Need> cache = ExpertCache::need(program, settings_);
    if (!cache) return fail(cache.error());
    backend::MemoryNeed need = Context::need(program, settings, execution());
    need.expert_bytes = PackedWeights::expert_bytes(program, placement) + cache->slot_bytes;
    need.weight_bytes = *weights + cache->slot_bytes;
    need.mapped_bytes = PackedWeights::mapped_bytes(program, placement);
    need.scratch_bytes += cache->scratch_bytes;
    need.scratch_bytes += pool_.size() * PackedWeights::row_area_bytes(program, placement);
    return need;
  }

  Status load(const Program& program, std::span<const std::span<const std::byte>> weights,
              const backend::Progress& progress) override {
    program_ = &program;
    if (settings_.route_trace != nullptr) {
      if (Status read = take_up_trace(*settings_.route_trace); !read) return read;
    }
    if (ExpertCache::is_wanted(settings_)) {
      Result<std::unique_ptr<ExpertCache>> cache = ExpertCache::create(program, settings_);
      if (!cache) return fail(std::move(cache).error());
      experts_ = *std::move(cache);
    }
    Status packed = weights_.pack(program, placement(program), weights, isa_, pool_, progress);
    if (!packed || !settings_.lock_memory) return packed;
    if (Status s = weights_.lock(); !s) return fail(Error(s.error()).with("packed weights"));
    if (experts_ == nullptr) return {};
    if (Status s = experts_->lock(); !s) return fail(Error(s.error()).with("slots of experts"));
    return {};
  }

  Result<ContextId> make_context(const ContextSettings& settings) override {
    if (Status s = check_kvs(*program_, settings); !s) return fail(s.error());
    Result<std::unique_ptr<Context>> context = Context::create(*program_, settings, execution());
    if (!context) return fail(std::move(context).error());
    if (settings_.lock_memory) {
      if (Status s = (*context)->lock(); !s) return fail(Error(s.error()).with("context"));
    }
    const ContextId id{next_context_++};
    contexts_.emplace(id.value, std::move(*context));
    return id;
  }

  void release_context(ContextId context) override { contexts_.erase(context.value); }

  Status run(ContextId id, std::span<const Row> rows, program::StepRange steps) override {
    Context& context = find(id);
    check_rows(context, rows);
    context.n_rows = rows.size();
    context.logit_rows.clear();
    for (size_t t = 0; t < rows.size(); ++t) {
      if (rows[t].wants_logits) context.logit_rows.push_back(static_cast<uint32_t>(t));
    }
    if (!program_->states.empty() && steps.begin == 0 && steps.list == program::StepList::kMain) {
      begin_states(context, rows);
    }
    std::optional<Playback> playback;
    if (replay_ && steps.list == program::StepList::kMain) {
      playback.emplace(
          Playback{.replay = *replay_, .layers = route_layers_, .first_token = n_rows_run_});
    }
    const Call call{.program = *program_,
                    .weights = weights_,
                    .experts = experts_.get(),
                    .ops = vector_ops(isa_),
                    .isa = isa_,
                    .planes = planes(),
                    .pool = pool_,
                    .context = context,
                    .rows = rows,
                    .playback = playback ? &*playback : nullptr};
    pool_.run([&](size_t thread) { walk_steps(call, steps, thread); });
    if (steps.begin == 0 && steps.list == program::StepList::kMain) n_rows_run_ += rows.size();
    if (experts_ == nullptr) return {};
    Status visited = experts_->visit().status();
    experts_->visit().end();
    return visited;
  }

  void read(ContextId id, BufferId buffer, std::span<float> out) const override {
    const BufferView& view = find(id).buffers[buffer.value];
    for (size_t t = 0; t < out.size() / view.width; ++t) {
      std::copy_n(view.row(t), view.width, out.data() + t * view.width);
    }
  }

  void write(ContextId id, BufferId buffer, std::span<const float> in) override {
    const BufferView& view = find(id).buffers[buffer.value];
    for (size_t t = 0; t < in.size() / view.width; ++t) {
      std::copy_n(in.data() + t * view.width, view.width, view.row(t));
    }
  }

  std::span<const float> logits(ContextId id) const override {
    const Context& context = find(id);
    const BufferView& view = context.buffers[program_->logits.value];
    return {view.data, context.logit_rows.size() * view.width};
  }

  backend::StateShape state_shape(ContextId id) const override {
    return cpu::state_shape(*program_, find(id));
  }

  void export_state(ContextId id, backend::PositionRange range,
                    backend::StateTarget to) const override {
    cpu::export_state(*program_, find(id), vector_ops(isa_), range, to);
  }

  void import_state(ContextId id, backend::PositionRange range,
                    backend::StateSource from) override {
    cpu::import_state(*program_, find(id), range, from);
  }

  experts::Statistics expert_statistics() const override {
    return experts_ == nullptr ? experts::Statistics{} : experts_->statistics();
  }

 private:
  [[nodiscard]] PackedWeights::Placement placement(const Program& program) const {
    return {.cached = ExpertCache::cached_weights(program, settings_), .repack = settings_.repack};
  }

  Status take_up_trace(const experts::RouteTrace& trace) {
    experts::RouteReplay::Shape shape;
    route_layers_.assign(program_->weights.size(), 0);
    for (const program::Step& step : program_->main) {
      const auto* route = std::get_if<program::Route>(&step.operation);
      if (route == nullptr) continue;
      route_layers_[route->weight.id] = shape.n_layers++;
      shape.n_experts = static_cast<uint32_t>(route->weight.rows);
      shape.n_used = route->out.n_used;
    }
    Result<experts::RouteReplay> replay = experts::RouteReplay::create(trace, shape);
    if (!replay) return fail(std::move(replay).error());
    replay_ = *std::move(replay);
    return {};
  }

  // Recurrent states go on from where they are, from a row that may be taken back, or from the
  // beginning of a sequence.
  static void begin_states(Context& context, std::span<const Row> rows) {
    const auto first = static_cast<size_t>(rows.front().position.value);
    if (first == 0) {
      for (const DeltaState& state : context.states) {
        std::ranges::fill(state.rows, 0.0f);
        std::ranges::fill(state.matrix, 0.0f);
        for (const DeltaLog& log : state.logs) {
          std::ranges::fill(log.keys, 0.0f);
          std::ranges::fill(log.changes, 0.0f);
          std::ranges::fill(log.log_decays, 0.0);
        }
      }
      context.span = {};
    }
    check(context.span.settled <= first && first <= context.span.end,
          "a recurrent state cannot jump in its sequence");
    const auto certain = static_cast<size_t>(
        std::ranges::find_if(rows, [](const Row& row) { return row.tentative; }) - rows.begin());
    context.span_before = context.span;
    context.span = {.settled = first + certain, .end = first + rows.size()};
  }

  // Experts are cut out of a packed matrix at tiles of 16 rows.
  static Status supports_experts(const program::Operation& operation) {
    const auto* route = std::get_if<program::Route>(&operation);
    if (route != nullptr && route->out.n_used > kMaxUsedExperts) {
      return fail("cpu: {} experts of a token; expected at most {}", route->out.n_used,
                  kMaxUsedExperts);
    }
    const auto* recurrent = std::get_if<program::Recurrent>(&operation);
    if (recurrent != nullptr && recurrent->conv.cols > kMaxTaps) {
      return fail("cpu: a convolution of {} taps; expected at most {}", recurrent->conv.cols,
                  kMaxTaps);
    }
    const auto fits = [](uint64_t rows) { return rows % kTileRows == 0; };
    const auto* up = std::get_if<program::ExpertGatedUp>(&operation);
    const auto* down = std::get_if<program::ExpertDownAdd>(&operation);
    if ((up != nullptr && !fits(up->gate.rows())) ||
        (down != nullptr && !fits(down->down.rows()))) {
      return fail("cpu: experts of {} rows; expected a multiple of {}",
                  up != nullptr ? up->gate.rows() : down->down.rows(), kTileRows);
    }
    return {};
  }

  void check_rows(const Context& context, std::span<const Row> rows) const {
    size_t wanting = 0;
    size_t tentative = 0;
    check(!rows.empty() && rows.size() <= context.settings.max_rows,
          "more rows than the context was made for");
    for (size_t t = 0; t < rows.size(); ++t) {
      const Row& row = rows[t];
      wanting += row.wants_logits ? 1 : 0;
      tentative += row.tentative ? 1 : 0;
      check(t == 0 || row.tentative || !rows[t - 1].tentative,
            "a row that stays after one that may not");
      check(row.position.value >= 0 &&
                static_cast<uint64_t>(row.position.value) < context.settings.n_positions,
            "position beyond the context");
      check(t == 0 || row.position.value == rows[t - 1].position.value + 1,
            "positions of a call are not consecutive");
      check(row.token.value >= 0 && static_cast<uint64_t>(row.token.value) < program_->n_vocab,
            "token outside the vocabulary");
    }
    check(wanting <= context.settings.max_logit_rows, "more logits than the context was made for");
    check(program_->states.empty() || tentative <= context.settings.max_tentative_rows,
          "more tentative rows than the context was made for");
  }

  [[nodiscard]] Execution execution() const {
    return {.n_threads = pool_.size(), .attention_block = attention_block_};
  }

  Context& find(ContextId id) const {
    const auto it = contexts_.find(id.value);
    check(it != contexts_.end(), "no such context");
    return *it->second;
  }

  Planes planes() const {
    return settings_.activation_bits == backend::ActivationBits::kEight ? Planes::kOne
                                                                        : Planes::kTwo;
  }

  backend::BackendSettings settings_;
  ThreadPool pool_;
  Isa isa_;
  size_t attention_block_;  // as AttentionArgs::block
  const Program* program_ = nullptr;
  PackedWeights weights_;
  std::optional<experts::RouteReplay> replay_;  // absent: routers choose
  std::vector<uint32_t> route_layers_;          // by weight id of the router
  uint64_t n_rows_run_ = 0;
  std::unique_ptr<ExpertCache> experts_;  // null: weights_ has all of them
  std::map<uint32_t, std::unique_ptr<Context>> contexts_;
  uint32_t next_context_ = 0;
};

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_cpu_backend(
    const backend::BackendSettings& settings) {
  const Result<Isa> isa = chosen_isa();
  if (!isa) return fail(isa.error());
  const Result<size_t> block = forced_attention_block();
  if (!block) return fail(block.error());
  return std::make_unique<CpuBackend>(settings, *isa, *block);
}

}  // namespace godwit::cpu
