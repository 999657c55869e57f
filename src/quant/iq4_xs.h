// IQ4_XS: 256 weights of 4 bits in 8 groups of 32, each group with a 6-bit scale s around 32.
// weight = d * (s - 32) * iq4_value(q), see value_tables.h; exact in f32 (11 + 6 + 7 bits).
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       2      little-endian word: bits 2g+1..2g are s[5:4] of group g
//   4       4      byte g / 2: s[3:0] of group g, in bits 3..0 for an even g, else bits 7..4
//   8       128    byte 16 g + i (i = 0..15): bits 3..0 q of weight i of group g, bits 7..4 q of
//                  weight i + 16 of group g
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/codes.h"
#include "quant/random_fill.h"
#include "quant/value_tables.h"

namespace godwit::quant {

struct BlockIQ4_XS {
  static constexpr TensorType kType = TensorType::kIQ4_XS;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t qs[128];
};
static_assert(kMatchesGeometry<BlockIQ4_XS>);

// s - 32 of a group 0..7.
[[nodiscard]] GODWIT_HOST_DEVICE inline int iq4_xs_scale(const BlockIQ4_XS& block, int group) {
  const int low = nibble_in_order(block.scales_low, group);
  const int high = (block.scales_high >> (2 * group)) & 3;
  return (low | high << 4) - 32;
}

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 8; ++group) {
    const float scale = d * static_cast<float>(iq4_xs_scale(block, group));
    decode_halves<16, iq4_value>(block.qs + ptrdiff_t{16} * group, scale,
                                 out + ptrdiff_t{32} * group);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ4_XS& out) {
  // s - 32 is uniform in -32..31, mean square 341.5; the sign of d makes the mean zero.
  const double unit = std::sqrt(341.5 * mean_square(kIq4Values));
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_signed_spread(random));
  out.scales_high = static_cast<uint16_t>(random.bits());
  fill_random(random, out.scales_low, sizeof(out.scales_low));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
