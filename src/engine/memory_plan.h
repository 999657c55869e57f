// What will be resident before anything is loaded, and whether it fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "program/program.h"

namespace godwit::engine {

struct MemoryPlan {
  uint64_t n_context = 0;  // positions
  backend::MemoryNeed need;
  uint64_t available_bytes = 0;  // when the plan was made; 0 when unknown
  // Resident when the plan was made: code, libraries, metadata, vocabulary. 0 where weights and
  // contexts go elsewhere, or when unknown.
  uint64_t process_bytes = 0;

  [[nodiscard]] uint64_t total() const {
    return need.weight_bytes + need.kv_bytes + need.state_bytes + need.scratch_bytes;
  }
  // What will be resident when the context is full; 0 when unknown.
  [[nodiscard]] uint64_t resident() const {
    return process_bytes == 0 ? 0 : total() + process_bytes;
  }
};

struct PlanRequest {
  uint64_t n_context = 0;  // 0: the trained context, shrunk to what fits
  backend::ContextSettings context;
  // Of memory, unless the backend has its own; 0: unknown; nullopt: measured by plan_memory().
  std::optional<uint64_t> available_bytes = {};
};

// Errors: the asked context does not fit (what it takes, what there is, what would fit), or not
// even the weights do.
[[nodiscard]] Result<MemoryPlan> plan_memory(const backend::Backend& backend,
                                             const program::Program& program,
                                             const PlanRequest& request);

// Memory that a plan may use of what is available now; 0 when that is unknown.
[[nodiscard]] uint64_t plannable_bytes(uint64_t available_bytes);

// "dense weights 1.2 GiB + experts 3.1 GiB (of 12.4) + KV 96.0 MiB + state 75.0 MiB + scratch
// 8.1 MiB = 4.5 GiB"; what a model does not have is left out. Weights
// that stay in the file's mapping are named, not counted. `all_expert_bytes`: in the file.
[[nodiscard]] std::string describe(const MemoryPlan& plan, uint64_t all_expert_bytes);

// GB/s at which the memory that holds the weights can be read, measured now; 0 when unknown.
[[nodiscard]] double read_bandwidth_gbps(const backend::Backend& backend, size_t n_threads);

// "1.2 GiB", for people.
[[nodiscard]] std::string format_bytes(uint64_t bytes);

}  // namespace godwit::engine
