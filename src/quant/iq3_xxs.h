// IQ3_XXS: 256 weights in 8 groups of 32: magnitudes from points of 4 of iq3_xxs_grid(), signs of
// even parity, a 4-bit scale s per group. weight = d * (s + 0.5) / 2 * magnitude. Exact in f32.
//
//   offset   bytes  content
//   0        2      d, binary16
//   2        64     byte j (j = 0..63): point of weights 4j..4j+3
//   66 + 4g  4      little-endian word: signs and s of group g, see SignWord in grids.h
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/grids.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockIQ3_XXS {
  static constexpr TensorType kType = TensorType::kIQ3_XXS;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint8_t qs[64];
  uint8_t signs_scales[32];
};
static_assert(kMatchesGeometry<BlockIQ3_XXS>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ3_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 8; ++group) {
    const SignWord word = load_sign_word(block.signs_scales + ptrdiff_t{4} * group);
    const float scale = iq3_xxs_scale(d, word.scale());
    for (int j = 0; j < 8; ++j) {
      const int8_t(&point)[4] = iq3_xxs_grid().points[block.qs[8 * group + j]];
      const int signs = word.signs(j / 2) >> (4 * (j % 2));
      decode_signed_point(point, signs, scale, out + ptrdiff_t{32} * group + ptrdiff_t{4} * j);
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ3_XXS& out) {
  constexpr double kMeanSquare = grid_mean_square(kIq3XxsCodes, kIq3XxsLevels);
  const double unit = std::sqrt(kMeanSquare * kGridScaleMeanSquare / 4.0);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.signs_scales, sizeof(out.signs_scales));
}

}  // namespace godwit::quant
