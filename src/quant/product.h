// A product that is rounded before anything is added to it, on host and device. Host code is
// compiled with -ffp-contract=off and would do without; nvcc contracts a*b+c unless told otherwise,
// and the bits of a decoded weight may not depend on a compiler's flag.
#pragma once

#include "base/host_device.h"

namespace godwit::quant {

[[nodiscard]] GODWIT_HOST_DEVICE inline float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

}  // namespace godwit::quant
