// IQ3_S: 256 weights in 8 groups of 32: magnitudes from points of 4 of iq3_s_grid(), a sign per
// weight, a 4-bit scale s per group. weight = d * (2 s + 1) * magnitude. Exact in f32.
//
//   offset  bytes  content; weights 4j..4j+3 have point p_j, j = 0..63
//   0       2      d, binary16
//   2       64     byte j: p_j[7:0]
//   66      8      byte j / 8: bit j mod 8 is p_j[8]
//   74      32     byte i / 8: bit i mod 8 is set when weight i is negative
//   106     4      byte g / 2: s of group g, in bits 3..0 for an even g, else bits 7..4
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/codes.h"
#include "quant/grids.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockIQ3_S {
  static constexpr TensorType kType = TensorType::kIQ3_S;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(kMatchesGeometry<BlockIQ3_S>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ3_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 64; ++j) {
    const float scale = iq3_s_scale(d, nibble_in_order(block.scales, j / 8));
    const int high = (block.qh[j / 8] >> (j % 8)) & 1;
    const int8_t(&point)[4] = iq3_s_grid().points[block.qs[j] | high << 8];
    const int signs = block.signs[j / 2] >> (4 * (j % 2));
    decode_signed_point(point, signs, scale, out + ptrdiff_t{4} * j);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ3_S& out) {
  constexpr double kMeanSquare = grid_mean_square(kIq3SCodes, kIq3SLevels);
  const double unit = std::sqrt(kMeanSquare * kGridScaleMeanSquare * 4.0);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.signs, sizeof(out.signs));
  fill_random(random, out.scales, sizeof(out.scales));
}

}  // namespace godwit::quant
