#include "backend/cuda/state.h"

namespace godwit::cuda {

backend::StateShape state_shape(const program::Program& program, const Context& context) {
  return backend::state_shape_of(program.kvs, context.settings.k_type, context.settings.v_type);
}

Status export_state(const program::Program&, const Context&, backend::PositionRange,
                    backend::StateTarget, cudaStream_t) {
  return fail("cuda: not written yet");
}

Status import_state(const program::Program&, Context&, backend::PositionRange,
                    backend::StateSource, cudaStream_t) {
  return fail("cuda: not written yet");
}

}  // namespace godwit::cuda
