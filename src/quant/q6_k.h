// Q6_K: 256 weights of 6 bits around 32 in 16 groups of 16, each group with a signed 8-bit scale s.
// weight = d * s * (q - 32), exact in f32 (at most 11 + 7 + 5 bits and powers of two).
//
//   offset  bytes  content; weight 128 h + 32 k + i with h = 0..1, k = 0..3, i = 0..31
//   0       128    byte 64 h + 32 (k mod 2) + i: q[3:0], in bits 3..0 for k < 2, else bits 7..4
//   128     64     byte 32 h + i: bits 2k+1..2k are q[5:4]
//   192     16     s of weights 16 j .. 16 j + 15, two's complement
//   208     2      d, binary16
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

struct BlockQ6_K {
  static constexpr TensorType kType = TensorType::kQ6_K;
  static constexpr int kWeights = 256;

  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};
static_assert(kMatchesGeometry<BlockQ6_K>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 16; ++group) {
    const int plane = group / 2;  // 4 h + k
    const float scale = d * static_cast<float>(block.scales[group]);
    const ptrdiff_t begin = ptrdiff_t{16} * (group % 2);
    const uint8_t* ql =
        block.ql + ptrdiff_t{64} * (plane / 4) + ptrdiff_t{32} * (plane % 2) + begin;
    const uint8_t* qh = block.qh + begin;
    float* group_out = out + ptrdiff_t{16} * group;
    for (int i = 0; i < 16; ++i) {
      const int low = nibble_of_half(ql, plane % 4 / 2, i);
      const int high = pair_of_plane(qh, plane, i);
      group_out[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ6_K& out) {
  // Codes are uniform in -32..31, mean square 341.5; |s| is uniform in 32..127, mean square
  // 79.5^2 + 767.9; the sign of s makes the mean zero.
  const double unit = std::sqrt(341.5 * (79.5 * 79.5 + (96.0 * 96.0 - 1.0) / 12.0));
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  for (int8_t& scale : out.scales) {
    const uint64_t bits = random.bits();
    const int magnitude = 32 + static_cast<int>((bits >> 8) % 96);
    scale = static_cast<int8_t>((bits & 1) != 0 ? -magnitude : magnitude);
  }
  fill_random(random, out.ql, sizeof(out.ql));
  fill_random(random, out.qh, sizeof(out.qh));
}

}  // namespace godwit::quant
