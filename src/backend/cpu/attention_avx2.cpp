// attention_body.h compiled for avx2.
#include "backend/cpu/attention_body.h"
#include "backend/cpu/vector_lanes_avx2.h"

namespace godwit::cpu::avx2 {

const AttentionKernels kAttentionKernels = AttentionBody<Avx2Lanes>::kTable;

}  // namespace godwit::cpu::avx2
