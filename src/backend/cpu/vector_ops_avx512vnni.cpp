// vector_body.h compiled for avx512vnni.
#include "backend/cpu/vector_body.h"
#include "backend/cpu/vector_lanes_avx512.h"

namespace godwit::cpu::avx512vnni {

const VectorOps kVectorOps = VectorBody<Avx512Lanes>::kTable;

}  // namespace godwit::cpu::avx512vnni
