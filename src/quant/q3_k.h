// Q3_K: 256 weights of 3 bits around 4 in 16 groups of 16, each group with a 6-bit scale s around
// 32. weight = d * (s - 32) * (q - 4), exact in f32 (at most 11 + 5 + 2 bits and powers of two).
//
//   offset  bytes  content; weight 128 c + 32 k + i with c = 0..1, k = 0..3, i = 0..31
//   0       32     byte i: bit 4c + k is q[2]
//   32      64     byte 32 c + i: bits 2k+1..2k are q[1:0]
//   96      8      byte j (j = 0..7): bits 3..0 s_j[3:0], bits 7..4 s_(j+8)[3:0]
//   104     4      byte j (j = 0..3): bits 2n+1..2n (n = 0..3) are s_(j+4n)[5:4]
//   108     2      d, binary16
//
// s_j is the scale of weights 16 j .. 16 j + 15.
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

// s - 32 of group 0..15 from the 12 packed bytes.
[[nodiscard]] GODWIT_HOST_DEVICE inline int q3_k_scale(const uint8_t* packed, int group) {
  const int low = nibble_of_half(packed, group / 8, group % 8);
  const int high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | high << 4) - 32;
}

struct BlockQ3_K {
  static constexpr TensorType kType = TensorType::kQ3_K;
  static constexpr int kWeights = 256;

  uint8_t qh[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};
static_assert(kMatchesGeometry<BlockQ3_K>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ3_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(q3_k_scale(block.scales, group));
    const uint8_t* qs = block.qs + ptrdiff_t{16} * (group % 2);
    const uint8_t* qh = block.qh + ptrdiff_t{16} * (group % 2);
    float* group_out = out + ptrdiff_t{16} * group;
    for (int i = 0; i < 16; ++i) {
      const int low = pair_of_plane(qs, group / 2, i);
      const int high = (qh[i] >> (group / 2)) & 1;
      group_out[i] = scale * static_cast<float>((low | high << 2) - 4);
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ3_K& out) {
  // q - 4 is uniform in -4..3, mean square 5.5, and s - 32 in -32..31, mean square 341.5; the sign
  // of d makes the mean zero.
  const double unit = std::sqrt(5.5 * 341.5);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_signed_spread(random));
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.scales, sizeof(out.scales));
}

}  // namespace godwit::quant
