// Scales as blocks hold them: binary16. Host only.
#pragma once

#include <cstdint>

#include "base/half.h"

namespace godwit::quant {

struct HalfScale {
  uint16_t bits = 0;
  float value = 0;
};

// The nearest binary16 value; but a scale that is not zero stays so, since the smallest subnormal
// number still tells large weights of a tiny group from small ones.
[[nodiscard]] inline HalfScale half_scale(float scale) {
  uint16_t bits = f32_to_f16(scale);
  if ((bits & 0x7fffu) == 0 && scale != 0) bits = static_cast<uint16_t>(bits | 1u);
  return {bits, f16_to_f32(bits)};
}

}  // namespace godwit::quant
