// Q5_K: 256 weights of 5 bits in 8 groups of 32, each group with a 6-bit scale s and minimum m.
// weight = d * s * q - dmin * m. Both products are exact in f32 (at most 11 + 6 + 5 bits), so that
// only the difference rounds, and an fma gives the same bits.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       2      dmin, binary16
//   4       12     s and m of the groups, see k_scales.h
//   16      32     byte i: bit g is q[4] of weight i of group g
//   48      128    byte 32 * c + i (c = 0..3, i = 0..31): bits 3..0 q[3:0] of weight i of group 2c,
//                  bits 7..4 q[3:0] of weight i of group 2c + 1
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

struct BlockQ5_K {
  static constexpr TensorType kType = TensorType::kQ5_K;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint16_t dmin;
  uint8_t scales[kKScaleBytes];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(kMatchesGeometry<BlockQ5_K>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ5_K& block, float* out) {
  const auto code_of = [&](int group, int i) {
    const int low = nibble_of_half(block.qs + ptrdiff_t{32} * (group / 2), group % 2, i);
    return low | ((block.qh[i] >> group) & 1) << 4;
  };
  decode_k_groups({block.d, block.dmin, block.scales}, code_of, out);
}

inline void random_block(RandomStream& random, float deviation, BlockQ5_K& out) {
  // Codes are uniform in 0..31: centre 15.5, variance 85.25.
  const double unit =
      std::sqrt(kRandomKScaleMeanSquare * 85.25 + kRandomKMinVariance * 15.5 * 15.5);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  out.dmin = f32_to_f16(15.5f * f16_to_f32(out.d));
  fill_random_k_scales(random, out.scales);
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
