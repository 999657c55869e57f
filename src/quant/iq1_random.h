// The random scale d of IQ1_S and IQ1_M, whose weights are d * (2 s + 1) * (point +- 1/8). Host
// only.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/random.h"
#include "quant/grids.h"
#include "quant/random_fill.h"

namespace godwit::quant {

// For uniform s, points and shifts. 2 s + 1 is uniform in 1, 3 .. 15: mean square 85. The sign of d
// makes the mean zero.
[[nodiscard]] inline uint16_t random_iq1_scale(RandomStream& random, float deviation) {
  constexpr double kMeanSquare = grid_mean_square(kIq1Codes, kIq1Levels) + 1.0 / 64.0;
  const double unit = std::sqrt(85.0 * kMeanSquare);
  return f32_to_f16(deviation / static_cast<float>(unit) * random_signed_spread(random));
}

}  // namespace godwit::quant
