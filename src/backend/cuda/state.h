// State of a context to and from the host in the layout of backend/state.h.
#pragma once

#include "backend/cuda/context.h"
#include "backend/state.h"

namespace godwit::cuda {

[[nodiscard]] backend::StateShape state_shape(const program::Program& program,
                                              const Context& context);
// Preconditions as Backend::export_state() and import_state() say, checked by the caller.
[[nodiscard]] Status export_state(const program::Program& program, const Context& context,
                                  backend::PositionRange range, backend::StateTarget to,
                                  cudaStream_t stream);
[[nodiscard]] Status import_state(const program::Program& program, Context& context,
                                  backend::PositionRange range, backend::StateSource from,
                                  cudaStream_t stream);

}  // namespace godwit::cuda
