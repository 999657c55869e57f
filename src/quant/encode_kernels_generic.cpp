// encode_body.h compiled for generic.
#include "quant/encode_body.h"
#include "quant/encode_lanes_generic.h"

namespace godwit::quant::generic {

const EncodeKernels kEncodeKernels = EncodeBody<GenericLanes>::kTable;

}  // namespace godwit::quant::generic
