#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "os/bandwidth.h"
#include "os/memory.h"

namespace godwit::engine {
namespace {

// Room for code, tokenizer tables and the allocator, which no backend counts.
constexpr uint64_t kOverheadBytes = uint64_t{128} << 20;

// The largest context whose total fits; KV grows linearly with it.
uint64_t fitting_context(const backend::MemoryNeed& need, uint64_t n_context, uint64_t budget) {
  const uint64_t fixed = need.weight_bytes + need.state_bytes + need.scratch_bytes;
  const uint64_t per_position = std::max<uint64_t>(1, need.kv_bytes / n_context);
  return budget <= fixed ? 0 : std::min(n_context, (budget - fixed) / per_position);
}

// What a smaller share of the experts would do, where that is much.
std::string expert_advice(const MemoryPlan& plan, uint64_t budget) {
  const backend::MemoryNeed& need = plan.need;
  const uint64_t others = plan.total() - need.expert_bytes;
  if (need.expert_bytes == 0 || others + (uint64_t{1} << 20) > budget) return "";
  return fmt::format(" ({} of them experts; --expert-cache-mib {} would fit)",
                     format_bytes(need.expert_bytes), (budget - others) >> 20);
}

}  // namespace

uint64_t plannable_bytes(uint64_t available_bytes) {
  return available_bytes > kOverheadBytes ? available_bytes - kOverheadBytes : 0;
}

std::string describe(const MemoryPlan& plan, uint64_t all_expert_bytes) {
  const backend::MemoryNeed& need = plan.need;
  std::string text =
      fmt::format("dense weights {}", format_bytes(need.weight_bytes - need.expert_bytes));
  if (need.mapped_bytes > 0) {
    text += fmt::format(" (and {} in the file's mapping)", format_bytes(need.mapped_bytes));
  }
  if (all_expert_bytes > 0) {
    text += fmt::format(" + experts {}", format_bytes(need.expert_bytes));
    if (need.expert_bytes < all_expert_bytes) {
      text += fmt::format(" (of {})", format_bytes(all_expert_bytes));
    }
  }
  text += fmt::format(" + KV {}", format_bytes(need.kv_bytes));
  if (need.state_bytes > 0) text += fmt::format(" + state {}", format_bytes(need.state_bytes));
  text += fmt::format(" + scratch {} = {}", format_bytes(need.scratch_bytes),
                      format_bytes(plan.total()));
  if (plan.resident() == 0) return text;
  return text + fmt::format(", with the program {} resident", format_bytes(plan.resident()));
}

Result<MemoryPlan> plan_memory(const backend::Backend& backend, const program::Program& program,
                               const PlanRequest& request) {
  MemoryPlan plan;
  plan.n_context = request.n_context != 0 ? request.n_context : program.trained_context;
  plan.available_bytes = backend.available_bytes().value_or(
      request.available_bytes ? *request.available_bytes : available_memory_bytes());

  backend::ContextSettings context = request.context;
  context.n_positions = plan.n_context;
  Result<backend::MemoryNeed> need = backend.memory_need(program, context);
  if (!need) return fail(need.error());
  plan.need = *need;
  if (plan.available_bytes == 0) return plan;

  const uint64_t budget = plannable_bytes(plan.available_bytes);
  if (plan.total() <= budget) return plan;

  uint64_t fits = fitting_context(plan.need, plan.n_context, budget);
  fits -= fits % 256;
  if (fits == 0) {
    return fail("the model does not fit in memory: weights take {}{}, {} are available",
                format_bytes(plan.need.weight_bytes), expert_advice(plan, budget),
                format_bytes(plan.available_bytes));
  }
  if (request.n_context != 0) {
    return fail(
        "a context of {} positions does not fit in memory: weights {} + KV {} + scratch {},"
        " {} are available; -c {} would fit",
        request.n_context, format_bytes(plan.need.weight_bytes), format_bytes(plan.need.kv_bytes),
        format_bytes(plan.need.scratch_bytes), format_bytes(plan.available_bytes), fits);
  }
  log::warn(fmt::format("context reduced from {} to {} positions to fit {} of memory",
                        plan.n_context, fits, format_bytes(plan.available_bytes)));
  plan.n_context = fits;
  context.n_positions = fits;
  need = backend.memory_need(program, context);
  if (!need) return fail(need.error());
  plan.need = *need;
  return plan;
}

double read_bandwidth_gbps(const backend::Backend& backend, size_t n_threads) {
  if (const std::optional<double> own = backend.read_bandwidth_gbps()) return *own;
  return measure_read_bandwidth_gbps(n_threads).value_or(0.0);
}

std::string format_bytes(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.2f} GiB", value / (1u << 30));
  if (bytes >= uint64_t{1} << 20) return fmt::format("{:.1f} MiB", value / (1u << 20));
  if (bytes >= uint64_t{1} << 10) return fmt::format("{:.1f} KiB", value / (1u << 10));
  return fmt::format("{} B", bytes);
}

}  // namespace godwit::engine
