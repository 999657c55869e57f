// vector_body.h compiled for avx2.
#include "backend/cpu/vector_body.h"
#include "backend/cpu/vector_lanes_avx2.h"

namespace godwit::cpu::avx2 {

const VectorOps kVectorOps = VectorBody<Avx2Lanes>::kTable;

}  // namespace godwit::cpu::avx2
