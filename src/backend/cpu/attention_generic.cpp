// attention_body.h compiled for generic.
#include "backend/cpu/attention_body.h"
#include "backend/cpu/vector_lanes_generic.h"

namespace godwit::cpu::generic {

const AttentionKernels kAttentionKernels = AttentionBody<GenericLanes>::kTable;

}  // namespace godwit::cpu::generic
