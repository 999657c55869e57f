// IQ2_XS: 256 weights in 16 groups of 16: magnitudes from points of 8 of iq2_xs_grid(), signs of
// even parity, a 4-bit scale s per group. weight = d * (s + 0.5) / 4 * magnitude. Exact in f32.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       64     little-endian word j (j = 0..31), of weights 8j..8j+7: bits 8..0 the point, bits
//                  15..9 the code of the signs, see even_signs() in grids.h
//   66      8      byte g / 2: s of group g, in bits 3..0 for an even g, else bits 7..4
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

struct BlockIQ2_XS {
  static constexpr TensorType kType = TensorType::kIQ2_XS;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint16_t qs[32];
  uint8_t scales[8];
};
static_assert(kMatchesGeometry<BlockIQ2_XS>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ2_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) {
    const float scale = iq2_scale(d, nibble_in_order(block.scales, j / 2));
    const int8_t(&point)[8] = iq2_xs_grid().points[block.qs[j] & 511];
    decode_signed_point(point, even_signs(block.qs[j] >> 9), scale, out + ptrdiff_t{8} * j);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ2_XS& out) {
  constexpr double kMeanSquare = grid_mean_square(kIq2XsCodes, kIq2Levels);
  const double unit = std::sqrt(kMeanSquare * kGridScaleMeanSquare / 16.0);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  for (uint16_t& q : out.qs) q = static_cast<uint16_t>(random.bits());
  fill_random(random, out.scales, sizeof(out.scales));
}

}  // namespace godwit::quant
