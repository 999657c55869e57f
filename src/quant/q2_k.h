// Q2_K: 256 weights of 2 bits in 16 groups of 16, each group with a 4-bit scale s and minimum m.
// weight = d * s * q - dmin * m. Both products are exact in f32 (at most 11 + 4 + 2 bits), so that
// only the difference rounds, and an fma gives the same bits.
//
//   offset  bytes  content; weight 128 c + 32 k + i with c = 0..1, k = 0..3, i = 0..31
//   0       16     byte j: bits 3..0 s, bits 7..4 m of weights 16 j .. 16 j + 15
//   16      64     byte 32 c + i: bits 2k+1..2k are q
//   80      2      d, binary16
//   82      2      dmin, binary16
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

namespace godwit::quant {

struct BlockQ2_K {
  static constexpr TensorType kType = TensorType::kQ2_K;
  static constexpr int kWeights = 256;

  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};
static_assert(kMatchesGeometry<BlockQ2_K>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ2_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block.scales[group] & 0x0f);
    const float min = dmin * static_cast<float>(block.scales[group] >> 4);
    const uint8_t* qs = block.qs + ptrdiff_t{16} * (group % 2);
    float* group_out = out + ptrdiff_t{16} * group;
    for (int i = 0; i < 16; ++i) {
      group_out[i] = scale * static_cast<float>(pair_of_plane(qs, group / 2, i)) - min;
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ2_K& out) {
  // Codes are uniform in 0..3: centre 1.5, variance 1.25. s is uniform in 1..14, mean square 72.5,
  // and m - s in -1..1: near enough for a mean of zero, and not the same (see k_random.h).
  const double unit = std::sqrt(72.5 * 1.25 + 2.0 / 3.0 * 1.5 * 1.5);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  out.dmin = f32_to_f16(1.5f * f16_to_f32(out.d));
  for (uint8_t& scale_min : out.scales) {
    const uint64_t scale = 1 + random.below(14);
    const uint64_t min = scale + random.below(3) - 1;
    scale_min = static_cast<uint8_t>(scale | min << 4);
  }
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
