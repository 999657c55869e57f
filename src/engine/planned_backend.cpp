#include "engine/planned_backend.h"

#include <algorithm>

#include "backend/registry.h"
#include "base/log.h"
#include "os/memory.h"

namespace godwit::engine {
namespace {

// Positions that experts make room for where nobody asks for a context: what is left beyond that
// is theirs first, since a long context that is not used is worth less than experts that are.
constexpr uint64_t kUnaskedPositions = 8192;

Result<std::unique_ptr<backend::Backend>> make(const EngineSettings& settings,
                                               const ModelParts& parts,
                                               const experts::CachePolicy& policy) {
  return backend::make_backend(settings.backend, {.n_threads = settings.n_threads,
                                                  .activation_bits = settings.activation_bits,
                                                  .lock_memory = settings.lock_memory,
                                                  .repack = settings.repack,
                                                  .experts = &parts.experts,
                                                  .expert_cache = policy,
                                                  .expert_reads = settings.expert_reads,
                                                  .route_trace = parts.route_trace});
}

Status check_steps(const backend::Backend& backend, const program::Program& program) {
  Status status;
  program::for_each_step(program, [&](const program::Step& step) {
    if (!status) return;
    if (Status s = backend.supports(step); !s) {
      status = fail(Error(s.error()).with(fmt::format("step '{}'", step.label)));
    }
  });
  return status;
}

backend::ContextSettings context_of(const EngineSettings& settings, uint64_t n_positions) {
  return {.n_positions = n_positions,
          .k_type = settings.k_type,
          .v_type = settings.v_type,
          .max_rows = settings.chunk_tokens,
          .max_logit_rows = settings.max_logit_rows,
          .max_tentative_rows = settings.max_tentative_rows};
}

// The policy of settings that name none.
Result<experts::CachePolicy> settle_policy(const EngineSettings& settings, const ModelParts& parts,
                                           const backend::Backend& with_all,
                                           uint64_t available_bytes) {
  const uint64_t n_positions = settings.n_context != 0
                                   ? settings.n_context
                                   : std::min(parts.program.trained_context, kUnaskedPositions);
  const backend::ContextSettings context = context_of(settings, n_positions);
  auto need = with_all.memory_need(parts.program, context);
  if (!need) return fail(need.error());
  const auto budget_of = [](uint64_t mib) {
    return experts::CachePolicy{.kind = experts::CacheKind::kBudget, .budget_mib = mib};
  };
  const uint64_t at_most = shrunk_expert_mib(*need, available_bytes);
  if (at_most == 0) return experts::CachePolicy{};
  // Who reads experts needs memory for that, beside the budget.
  const auto within = make(settings, parts, budget_of(at_most));
  if (!within) return fail(within.error());
  const auto need_within = (*within)->memory_need(parts.program, context);
  if (!need_within) return fail(need_within.error());
  need->scratch_bytes = need_within->scratch_bytes;
  const uint64_t mib = shrunk_expert_mib(*need, available_bytes);
  if (mib == 0) return experts::CachePolicy{};
  log::warn(
      fmt::format("experts: {} of {} are kept in memory, the others read as they are needed "
                  "(--expert-cache-mib)",
                  format_bytes(mib << 20), format_bytes(need->expert_bytes)));
  return budget_of(mib);
}

}  // namespace

uint64_t shrunk_expert_mib(const backend::MemoryNeed& need, uint64_t available_bytes) {
  const MemoryPlan plan{.n_context = 0, .need = need, .available_bytes = available_bytes};
  const uint64_t budget = plannable_bytes(available_bytes);
  const uint64_t others = plan.total() - need.expert_bytes;
  if (available_bytes == 0 || plan.total() <= budget || budget <= others) return 0;
  return (budget - others) >> 20;
}

Result<PlannedBackend> plan_backend(const EngineSettings& settings, const ModelParts& parts,
                                    uint64_t available_bytes) {
  PlannedBackend planned;
  planned.expert_cache = settings.expert_cache.value_or(experts::CachePolicy{});
  auto backend = make(settings, parts, planned.expert_cache);
  if (!backend) return fail(std::move(backend).error());
  if (Status s = check_steps(**backend, parts.program); !s) return fail(s.error());
  if (!settings.expert_cache) {
    const auto policy = settle_policy(settings, parts, **backend, available_bytes);
    if (!policy) return fail(policy.error());
    if (*policy != planned.expert_cache) {
      planned.expert_cache = *policy;
      backend = make(settings, parts, *policy);
      if (!backend) return fail(std::move(backend).error());
    }
  }
  const auto plan = plan_memory(**backend, parts.program,
                                {.n_context = settings.n_context,
                                 .context = context_of(settings, 0),
                                 .available_bytes = available_bytes});
  if (!plan) return fail(plan.error());
  planned.plan = *plan;
  if (!(*backend)->available_bytes()) planned.plan.process_bytes = resident_bytes();
  planned.backend = *std::move(backend);
  return planned;
}

}  // namespace godwit::engine
