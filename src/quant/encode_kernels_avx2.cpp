// encode_body.h compiled for avx2.
#include "quant/encode_body.h"
#include "quant/encode_lanes_avx2.h"

namespace godwit::quant::avx2 {

const EncodeKernels kEncodeKernels = EncodeBody<Avx2Lanes>::kTable;

}  // namespace godwit::quant::avx2
