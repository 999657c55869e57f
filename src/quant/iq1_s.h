// IQ1_S: 256 weights in 8 groups of 32: points of 8 of iq1_grid(), a 3-bit scale s and a shift of
// all weights per group. weight = d * (2 s + 1) * (point +- 1/8). Exact in f32.
//
//   offset  bytes  content; weights 8j..8j+7 have point p_j, j = 0..31
//   0       2      d, binary16
//   2       32     byte j: p_j[7:0]
//   34      16     little-endian word g (g = 0..7): bits 3n+2..3n (n = 0..3) are p_(4g+n)[10:8],
//                  bits 14..12 s, bit 15 is set when 1/8 is subtracted
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/grids.h"
#include "quant/iq1_random.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockIQ1_S {
  static constexpr TensorType kType = TensorType::kIQ1_S;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint8_t qs[32];
  uint16_t qh[8];
};
static_assert(kMatchesGeometry<BlockIQ1_S>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ1_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) {
    const int qh = block.qh[j / 4];
    const float scale = d * static_cast<float>(2 * ((qh >> 12) & 7) + 1);
    const int high = (qh >> (3 * (j % 4))) & 7;
    const int8_t(&point)[8] = iq1_grid().points[block.qs[j] | high << 8];
    decode_shifted_point(point, qh >> 15, scale, out + ptrdiff_t{8} * j);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ1_S& out) {
  out.d = random_iq1_scale(random, deviation);
  fill_random(random, out.qs, sizeof(out.qs));
  for (uint16_t& word : out.qh) word = static_cast<uint16_t>(random.bits());
}

}  // namespace godwit::quant
