// The oracle's state in and out (backend/state.h). It keeps doubles, so F64 is what it exports,
// whatever KV type they were rounded to; no other backend takes them.
#pragma once

#include <span>

#include "backend/reference/delta_rule.h"
#include "backend/reference/steps.h"
#include "backend/state.h"

namespace godwit::reference {

[[nodiscard]] backend::StateShape state_shape(const program::Program& program);
// `caches` are indexed like `kvs`. Preconditions (checked but for the first): the range within the
// caches, spans as backend/state.h says.
void export_state(const program::Program& program, std::span<const KvCache> caches,
                  std::span<const DeltaStates> states, backend::PositionRange range,
                  backend::StateTarget to);
void import_state(const program::Program& program, std::span<KvCache> caches,
                  std::span<DeltaStates> states, backend::PositionRange range,
                  backend::StateSource from);

}  // namespace godwit::reference
