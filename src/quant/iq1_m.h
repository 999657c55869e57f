// IQ1_M: 256 weights in 16 groups of 16: points of 8 of iq1_grid() with a shift each, a 3-bit scale
// s per group. weight = d * (2 s + 1) * (point +- 1/8). Exact in f32.
//
//   offset  bytes  content; weights 8j..8j+7 have point p_j, j = 0..31
//   0       32     byte j: p_j[7:0]
//   32      16     nibble j, in bits 3..0 of byte j / 2 for an even j, else bits 7..4: bits 2..0
//                  p_j[10:8], bit 3 is set when 1/8 is subtracted
//   48      8      little-endian word k (k = 0..3): bits 3n+2..3n (n = 0..3) are s of group 4k + n,
//                  bits 15..12 are bits 4k+3..4k of d, binary16
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/codes.h"
#include "quant/grids.h"
#include "quant/iq1_random.h"
#include "quant/random_fill.h"

namespace godwit::quant {

// The bits of d, a nibble of which is at the top of each of the four words of scales.
[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t iq1_m_d(const uint16_t* scales) {
  return static_cast<uint16_t>(scales[0] >> 12 | (scales[1] >> 12) << 4 | (scales[2] >> 12) << 8 |
                               (scales[3] >> 12) << 12);
}

struct BlockIQ1_M {
  static constexpr TensorType kType = TensorType::kIQ1_M;
  static constexpr int kWeights = 256;

  uint8_t qs[32];
  uint8_t qh[16];
  uint16_t scales[4];
};
static_assert(kMatchesGeometry<BlockIQ1_M>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ1_M& block, float* out) {
  const float d = f16_to_f32(iq1_m_d(block.scales));
  for (int j = 0; j < 32; ++j) {
    const int group = j / 2;
    const int s = (block.scales[group / 4] >> (3 * (group % 4))) & 7;
    const int qh = nibble_in_order(block.qh, j);
    const int8_t(&point)[8] = iq1_grid().points[block.qs[j] | (qh & 7) << 8];
    decode_shifted_point(point, qh >> 3, d * static_cast<float>(2 * s + 1), out + ptrdiff_t{8} * j);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ1_M& out) {
  const uint16_t d = random_iq1_scale(random, deviation);
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.qh, sizeof(out.qh));
  for (int k = 0; k < 4; ++k) {
    const uint64_t nibble = (d >> (4 * k)) & 0x0fu;
    out.scales[k] = static_cast<uint16_t>((random.bits() & 0x0fff) | nibble << 12);
  }
}

}  // namespace godwit::quant
