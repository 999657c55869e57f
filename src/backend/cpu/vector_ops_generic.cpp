// vector_body.h compiled for generic.
#include "backend/cpu/vector_body.h"
#include "backend/cpu/vector_lanes_generic.h"

namespace godwit::cpu::generic {

const VectorOps kVectorOps = VectorBody<GenericLanes>::kTable;

}  // namespace godwit::cpu::generic
