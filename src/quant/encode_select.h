// Which set of inner loops the encoders use: the best that this processor has and GODWIT_ISA
// allows.
#pragma once

#include "os/cpu_features.h"
#include "quant/encode_kernels.h"

namespace godwit::quant {

[[nodiscard]] const EncodeKernels& encode_kernels(Isa isa);

// Chosen once per process. A GODWIT_ISA that asks for what is not there counts as generic here:
// commands refuse it with chosen_isa() before they come this far.
[[nodiscard]] const EncodeKernels& encode_kernels();

}  // namespace godwit::quant
