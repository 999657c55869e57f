// Q4_K: 256 weights of 4 bits in 8 groups of 32, each group with a 6-bit scale s and minimum m.
// weight = d * s * q - dmin * m. Both products are exact in f32 (at most 11 + 6 + 4 bits), so that
// only the difference rounds, and an fma gives the same bits.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       2      dmin, binary16
//   4       12     s and m of the groups, see k_scales.h
//   16      128    byte 32 * c + i (c = 0..3, i = 0..31): bits 3..0 q of weight i of group 2c,
//                  bits 7..4 q of weight i of group 2c + 1
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/codes.h"
#include "quant/k_groups.h"
#include "quant/k_random.h"
#include "quant/k_scales.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockQ4_K {
  static constexpr TensorType kType = TensorType::kQ4_K;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint16_t dmin;
  uint8_t scales[kKScaleBytes];
  uint8_t qs[128];
};
static_assert(kMatchesGeometry<BlockQ4_K>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ4_K& block, float* out) {
  const auto code_of = [&](int group, int i) {
    return nibble_of_half(block.qs + ptrdiff_t{32} * (group / 2), group % 2, i);
  };
  decode_k_groups({block.d, block.dmin, block.scales}, code_of, out);
}

inline void random_block(RandomStream& random, float deviation, BlockQ4_K& out) {
  // Codes are uniform in 0..15: centre 7.5, variance 21.25.
  const double unit = std::sqrt(kRandomKScaleMeanSquare * 21.25 + kRandomKMinVariance * 7.5 * 7.5);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  out.dmin = f32_to_f16(7.5f * f16_to_f32(out.d));
  fill_random_k_scales(random, out.scales);
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
