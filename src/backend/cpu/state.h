// A context's state in and out, in the layout of backend/state.h: keys leave their tiles of
// positions and come back to them, numbers stay the bits they are. Called by the backend, never
// while steps run.
#pragma once

#include "backend/cpu/context.h"
#include "backend/cpu/vector_ops.h"
#include "backend/state.h"
#include "program/program.h"

namespace godwit::cpu {

[[nodiscard]] backend::StateShape state_shape(const program::Program& program,
                                              const Context& context);
// Preconditions (checked): the range within the context's positions, spans as backend/state.h says.
void export_state(const program::Program& program, const Context& context, const VectorOps& ops,
                  backend::PositionRange range, backend::StateTarget to);
void import_state(const program::Program& program, Context& context, backend::PositionRange range,
                  backend::StateSource from);

}  // namespace godwit::cpu
