// What will be resident before anything is loaded, and whether it fits.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "base/result.h"
#include "program/program.h"

namespace godwit::engine {

struct MemoryPlan {
  uint64_t n_context = 0;  // positions
  backend::MemoryNeed need;
  uint64_t available_bytes = 0;  // when the plan was made; 0 when unknown

  [[nodiscard]] uint64_t total() const {
    return need.weight_bytes + need.kv_bytes + need.scratch_bytes;
  }
};

struct PlanRequest {
  uint64_t n_context = 0;  // 0: the trained context, shrunk to what fits
  backend::ContextSettings context;
};

// Errors: the asked context does not fit (what it takes, what there is, what would fit), or not
// even the weights do.
[[nodiscard]] Result<MemoryPlan> plan_memory(const backend::Backend& backend,
                                             const program::Program& program,
                                             const PlanRequest& request);

// "1.2 GiB", for people.
[[nodiscard]] std::string format_bytes(uint64_t bytes);

}  // namespace godwit::engine
