// IQ2_XXS: 256 weights in 8 groups of 32: magnitudes from points of 8 of iq2_xxs_grid(), signs of
// even parity, a 4-bit scale s per group. weight = d * (s + 0.5) / 4 * magnitude. Exact in f32.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2 + 8g  4      byte j (j = 0..3): point of weights 8j..8j+7 of group g
//   6 + 8g  4      little-endian word: signs and s of group g, see SignWord in grids.h
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

struct BlockIQ2_XXS {
  static constexpr TensorType kType = TensorType::kIQ2_XXS;
  static constexpr int kWeights = 256;

  uint16_t d;
  uint8_t qs[64];
};
static_assert(kMatchesGeometry<BlockIQ2_XXS>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ2_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* qs = block.qs + ptrdiff_t{8} * group;
    const SignWord word = load_sign_word(qs + 4);
    const float scale = iq2_scale(d, word.scale());
    for (int j = 0; j < 4; ++j) {
      float* point_out = out + ptrdiff_t{32} * group + ptrdiff_t{8} * j;
      decode_signed_point(iq2_xxs_grid().points[qs[j]], word.signs(j), scale, point_out);
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockIQ2_XXS& out) {
  constexpr double kMeanSquare = grid_mean_square(kIq2XxsCodes, kIq2Levels);
  const double unit = std::sqrt(kMeanSquare * kGridScaleMeanSquare / 16.0);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
