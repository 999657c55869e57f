// IQ2_S: 256 weights in 16 groups of 16: magnitudes from points of 8 of iq2_s_grid(), a sign per
// weight, a 4-bit scale s per group. weight = d * (s + 0.5) / 4 * magnitude. Exact in f32.
//
//   offset  bytes  content; weights 8j..8j+7 have point p_j, j = 0..31
//   0       2      d, binary16
//   2       32     byte j: p_j[7:0]
//   34      32     byte j: bit i is set when weight 8j + i is negative
//   66      8      byte j / 4: bits 2n+1..2n with n = j mod 4 are p_j[9:8]
//   74      8      byte g / 2: s of group g, in bits 3..0 for an even g, else bits 7..4
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

struct BlockIQ2_S {
  static constexpr TensorType kType = TensorType::kIQ2_S;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
static_assert(kMatchesGeometry<BlockIQ2_S>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ2_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) {
    const float scale = iq2_scale(d, nibble_in_order(block.scales, j / 2));
    const int high = (block.qh[j / 4] >> (2 * (j % 4))) & 3;
    const int8_t(&point)[8] = iq2_s_grid().points[block.qs[j] | high << 8];
    decode_signed_point(point, block.signs[j], scale, out + ptrdiff_t{8} * j);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ2_S& out) {
  constexpr double kMeanSquare = grid_mean_square(kIq2SCodes, kIq2Levels);
  const double unit = std::sqrt(kMeanSquare * kGridScaleMeanSquare / 16.0);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.signs, sizeof(out.signs));
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.scales, sizeof(out.scales));
}

}  // namespace godwit::quant
