// Scale and offset of a group of weights whose codes stand for scale * q + offset: the search
// that Q4_1, Q5_1, Q2_K, Q4_K and Q5_K share. As in encode_scale.h, starting points near "smallest
// weight to code 0, largest to the last" are rounded to codes, and weighted least squares gives
// the best scale and offset for these codes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "quant/encode_scale.h"

namespace godwit::quant {

// weight = scale * q + offset.
struct Affine {
  float scale = 0;
  float offset = 0;
};

// K types can only subtract: their offset is never above zero.
enum class OffsetSign { kAny, kNotPositive };

struct AffineRange {
  float last_code = 15;
  OffsetSign sign = OffsetSign::kAny;
};

// Weighted sums over a group with codes q. The weights y are measured from the group's smallest
// one, so that no digits cancel where all lie far from zero.
struct LineSums {
  float w = 0, y = 0, yy = 0;   // of the group
  float q = 0, qq = 0, qy = 0;  // of these codes
};

// A line through (q, y), and what it leaves of sum w * y * y.
struct LineFit {
  Affine line;
  float error = 0;
};

[[nodiscard]] inline float line_error(const LineSums& sums, const Affine& line) {
  const float a = line.scale;
  const float b = line.offset;
  return sums.yy + a * (a * sums.qq + 2 * b * sums.q - 2 * sums.qy) + b * (b * sums.w - 2 * sums.y);
}

// The best line for these codes whose offset is at most `highest_offset`.
[[nodiscard]] inline LineFit fit_line(const LineSums& sums, float highest_offset) {
  const float determinant = sums.w * sums.qq - sums.q * sums.q;
  Affine line;
  if (determinant > 0) {
    line.scale = (sums.w * sums.qy - sums.q * sums.y) / determinant;
    line.offset = (sums.qq * sums.y - sums.q * sums.qy) / determinant;
  } else {  // all codes are the same, or all that have importance
    line.offset = sums.w > 0 ? sums.y / sums.w : 0.0f;
  }
  if (line.offset > highest_offset) {
    line.offset = highest_offset;
    line.scale = sums.qq > 0 ? (sums.qy - highest_offset * sums.q) / sums.qq : 0.0f;
  }
  return {line, line_error(sums, line)};
}

// sum w * (scale * q + offset - x)^2 with the best codes, for each of eight lines.
[[nodiscard]] inline Lanes line_errors(const GroupArgs& group, float last_code, const Lanes& scale,
                                       const Lanes& offset) {
  Lanes inverse{};
  for (size_t k = 0; k < kLanes; ++k) inverse[k] = inverse_or_zero(scale[k]);
  Lanes errors{};
  encode_kernels().line_errors(group, last_code, scale.data(), inverse.data(), offset.data(),
                               errors.data());
  return errors;
}

// What a search for the line of one group knows.
struct LineSearch {
  GroupArgs group;  // measured from the smallest weight
  LineSums sums;    // those of the group filled in
  float last_code = 15;
  float highest_offset = 0;
  LineFit best;

  // Codes are inverse * y + shift, to the nearest.
  void try_lines(const Lanes& inverse, const Lanes& shift) {
    LineLanes lanes;
    encode_kernels().try_lines(group, last_code, inverse.data(), shift.data(), lanes);
    for (size_t k = 0; k < kLanes; ++k) {
      LineSums candidate = sums;
      candidate.q = lanes.q[k];
      candidate.qq = lanes.qq[k];
      candidate.qy = lanes.qy[k];
      const LineFit fit = fit_line(candidate, highest_offset);
      if (fit.error < best.error && fit.line.scale > 0) best = fit;
    }
  }

  // The ends of the range moved in and out by up to a step.
  void try_ends(float width) {
    for (int pass = 0; pass < 2; ++pass) {
      Lanes inverse{};
      for (size_t k = 0; k < kLanes; ++k) {
        const float more = static_cast<float>(pass) + static_cast<float>(k) / kLanes - 1.0f;
        inverse[k] = (last_code + 1.2f * more) / width;
      }
      try_lines(inverse, Lanes{});
    }
  }

  // From one rounding of the codes to the next, around the best so far.
  void try_again() {
    Lanes inverse{};
    Lanes shift{};
    for (size_t k = 0; k < kLanes; ++k) {
      const float spread = (2.0f * static_cast<float>(k) - 7.0f) / 7.0f;
      inverse[k] = (1.0f + 0.3f * spread / last_code) / best.line.scale;
      shift[k] = -best.line.offset * inverse[k];
    }
    try_lines(inverse, shift);
  }
};

// The line for weights x with importances w. A group of equal weights gets scale 0, or, where the
// offset cannot be positive, one code for all.
template <size_t kSize>
[[nodiscard]] inline Affine fit_affine(std::span<const float, kSize> x,
                                       std::span<const float, kSize> w, const AffineRange& range) {
  float low = *std::min_element(x.begin(), x.end());
  const float high = *std::max_element(x.begin(), x.end());
  if (range.sign == OffsetSign::kNotPositive) low = std::min(low, 0.0f);
  const float width = high - low;
  if (!(width > 0) || !std::isfinite(range.last_code / width)) return {.scale = 0, .offset = low};
  std::array<float, kSize> y;
  LineSearch search{.group = {.x = y.data(), .w = w.data(), .n = kSize},
                    .sums = {},
                    .last_code = range.last_code,
                    .highest_offset = range.sign == OffsetSign::kAny ? width : -low,
                    .best = {}};
  for (size_t i = 0; i < kSize; ++i) {
    y[i] = x[i] - low;
    search.sums.w += w[i];
    search.sums.y += w[i] * y[i];
    search.sums.yy += w[i] * y[i] * y[i];
  }
  const Affine start{.scale = width / range.last_code, .offset = 0};
  search.best = {start, line_errors(search.group, range.last_code, {start.scale}, {})[0]};
  search.try_ends(width);
  search.try_again();
  search.try_again();
  return {.scale = search.best.line.scale, .offset = search.best.line.offset + low};
}

}  // namespace godwit::quant
