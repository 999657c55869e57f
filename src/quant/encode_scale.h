// The scale of a group of weights whose codes stand for scale * level: the search that Q4_0, Q5_0,
// Q6_K, IQ4_NL and IQ4_XS share. Rounding to a given scale is easy and so is the best scale for
// given codes (weighted least squares); a handful of starting scales around the one that maps the
// largest weight to the last level finds a pair that is good for both.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "quant/encode_levels.h"

namespace godwit::quant {

struct ScaleFit {
  float scale = 0;
  float gain = 0;  // what it takes off the sum of w * x * x
};

template <size_t kSize>
[[nodiscard]] inline GroupArgs group_args(std::span<const float, kSize> x,
                                          std::span<const float, kSize> w) {
  return {.x = x.data(), .w = w.data(), .n = kSize};
}

// 1 / x, and 0 for 0.
[[nodiscard]] inline float inverse_or_zero(float x) { return x != 0 ? 1.0f / x : 0.0f; }

// sum w * (scale * q - x)^2 with the best codes, for each of eight scales, of which some may be 0.
template <class Levels>
[[nodiscard]] inline Lanes scale_errors(const GroupArgs& group, const Lanes& scale) {
  Lanes inverse{};
  for (size_t k = 0; k < kLanes; ++k) inverse[k] = inverse_or_zero(scale[k]);
  Lanes errors{};
  Levels::errors(group, scale, inverse, errors);
  return errors;
}

// The element of largest magnitude, 0 in a group of zeros.
[[nodiscard]] inline float largest_magnitude(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(largest)) largest = value;
  }
  return largest;
}

// Eight inverse scales spread evenly over centre +- reach, or `best` if that is better.
template <class Levels>
[[nodiscard]] inline ScaleFit try_around(const GroupArgs& group, float centre, float reach,
                                         ScaleFit best) {
  Lanes inverse{};
  for (size_t k = 0; k < kLanes; ++k) {
    inverse[k] = centre + reach * (2.0f * static_cast<float>(k) - 7.0f) / 7.0f;
  }
  ScaleLanes sums;
  Levels::try_scales(group, inverse, sums);
  for (size_t k = 0; k < kLanes; ++k) {
    if (!(sums.qq[k] > 0)) continue;
    const float scale = sums.qx[k] / sums.qq[k];
    const float gain = scale * sums.qx[k];
    if (gain > best.gain) best = {scale, gain};
  }
  return best;
}

// The scale for weights x with importances w; 0 for a group of zeros. The levels reach further
// down than up, so the largest weight is tried at either end.
template <class Levels, size_t kSize>
[[nodiscard]] inline float fit_scale(std::span<const float, kSize> x,
                                     std::span<const float, kSize> w) {
  const float largest = largest_magnitude(x);
  if (!std::isfinite(inverse_or_zero(largest)) || largest == 0) return 0;
  const GroupArgs group = group_args(x, w);
  const float reach = 0.9f * Levels::step_at_end() / largest;
  ScaleFit best;
  best = try_around<Levels>(group, Levels::lowest() / largest, reach, best);
  best = try_around<Levels>(group, Levels::highest() / largest, reach, best);
  if (best.scale == 0) return 0;
  // Around the best so far: from one rounding of the codes to the next.
  return try_around<Levels>(group, 1.0f / best.scale, 0.15f * reach, best).scale;
}

}  // namespace godwit::quant
