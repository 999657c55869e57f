#include "backend/cpu/vector_ops.h"

namespace godwit::cpu {

const VectorOps& vector_ops(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return generic::kVectorOps;
    case Isa::kAvx2:
      return avx2::kVectorOps;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
      return avx512vnni::kVectorOps;
  }
  return generic::kVectorOps;
}

}  // namespace godwit::cpu
