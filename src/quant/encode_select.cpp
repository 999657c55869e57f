#include "quant/encode_select.h"

namespace godwit::quant {

const EncodeKernels& encode_kernels(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return generic::kEncodeKernels;
    case Isa::kAvx2:
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
      return avx2::kEncodeKernels;
  }
  return generic::kEncodeKernels;
}

const EncodeKernels& encode_kernels() {
  static const EncodeKernels& chosen = encode_kernels(chosen_isa().value_or(Isa::kGeneric));
  return chosen;
}

}  // namespace godwit::quant
