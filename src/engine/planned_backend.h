// The backend that settings ask for and what it will keep resident, before anything is loaded.
// Where nobody says how many routed experts that shall be, it is all of them if memory holds them,
// else as many as it does. Called by Engine::load and by `info`.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "experts/source.h"
#include "program/program.h"

namespace godwit::engine {

struct PlannedBackend {
  std::unique_ptr<backend::Backend> backend;
  MemoryPlan plan;
  experts::CachePolicy expert_cache;  // settled
};

struct ModelParts {
  const program::Program& program;
  const experts::ExpertSource& experts;
  const experts::RouteTrace* route_trace = nullptr;
};

// `settings` have their threads and logit rows settled; everything in `parts` outlives the backend.
// `available_bytes`: of memory, 0 when unknown. Errors: an unknown backend, a step it cannot run,
// what does not fit in memory.
[[nodiscard]] Result<PlannedBackend> plan_backend(const EngineSettings& settings,
                                                  const ModelParts& parts,
                                                  uint64_t available_bytes);

// What the budget for experts would be with `available_bytes` of memory, once everything else has
// its share, by a backend's need for all of them: 0 if all fit, or nothing is known.
[[nodiscard]] uint64_t shrunk_expert_mib(const backend::MemoryNeed& need, uint64_t available_bytes);

}  // namespace godwit::engine
