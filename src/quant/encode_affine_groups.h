// Groups that share two scales d and dmin through whole-number scales s and m of their own,
// weight = d * s * q - dmin * m: the search that Q2_K, Q4_K and Q5_K share. Host
// only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/encode_affine.h"
#include "quant/encode_half.h"
#include "quant/encode_importance.h"

namespace godwit::quant {

// kMaxStep: the largest whole-number scale.
template <size_t kGroupsOf, size_t kWeightsOf, int kMaxStepOf, int kLastCodeOf>
struct AffineGroupsSpec {
  static constexpr size_t kGroups = kGroupsOf;
  static constexpr size_t kWeights = kWeightsOf;  // of a group
  static constexpr size_t kSize = kGroups * kWeights;
  static constexpr int kMaxStep = kMaxStepOf;
  static constexpr float kLastCode = static_cast<float>(kLastCodeOf);
};

using Weights256 = std::span<const float, 256>;

// s and m of a group.
struct AffineSteps {
  int scale = 0;
  int min = 0;
};

template <class Spec>
struct AffineGroups {
  static_assert(Spec::kSize == 256);
  HalfScale d;
  HalfScale dmin;
  std::array<AffineSteps, Spec::kGroups> groups{};
  double error = 0;

  [[nodiscard]] float scale(size_t group) const {
    return d.value * static_cast<float>(groups[group].scale);
  }
  [[nodiscard]] float min(size_t group) const {
    return dmin.value * static_cast<float>(groups[group].min);
  }
};

template <class Spec>
[[nodiscard]] inline std::span<const float, Spec::kWeights> affine_group(Weights256 block,
                                                                         size_t group) {
  return block.subspan(group * Spec::kWeights).template first<Spec::kWeights>();
}

template <class Spec>
[[nodiscard]] inline std::array<float, 256> affine_importance(Weights256 x) {
  std::array<float, 256> w;
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    raised_magnitudes(
        affine_group<Spec>(x, group),
        std::span(w).subspan(group * Spec::kWeights).template first<Spec::kWeights>());
  }
  return w;
}

[[nodiscard]] inline int nearest_step(float value, float unit, int max_step) {
  const float steps = value * inverse_or_zero(unit);
  return static_cast<int>(
      nearest_whole(std::min(std::max(steps, 0.0f), static_cast<float>(max_step))));
}

// Fills in s and m of a group from the steps around the exact ones, and adds to the error. They are
// chosen together: rounding one the wrong way can make up for the rounding of the other.
template <class Spec>
inline void choose_steps(const GroupArgs& args, const Affine& line, size_t group,
                         AffineGroups<Spec>& block) {
  const int scale = nearest_step(line.scale, block.d.value, Spec::kMaxStep);
  const int min = nearest_step(-line.offset, block.dmin.value, Spec::kMaxStep);
  float best = -1;
  for (const int away : {0, -1, 1}) {
    std::array<AffineSteps, kLanes> steps{};
    Lanes scales{};
    Lanes offsets{};
    for (int k = 0; k < static_cast<int>(kLanes); ++k) {
      const auto lane = static_cast<size_t>(k);
      steps[lane] = {.scale = std::clamp(scale + away, 0, Spec::kMaxStep),
                     .min = std::clamp(min + k - 3, 0, Spec::kMaxStep)};
      scales[lane] = block.d.value * static_cast<float>(steps[lane].scale);
      offsets[lane] = -block.dmin.value * static_cast<float>(steps[lane].min);
    }
    const Lanes errors = line_errors(args, Spec::kLastCode, scales, offsets);
    for (size_t k = 0; k < kLanes; ++k) {
      if (best >= 0 && errors[k] >= best) continue;
      best = errors[k];
      block.groups[group] = steps[k];
    }
  }
  block.error += static_cast<double>(best);
}

template <class Spec>
[[nodiscard]] inline AffineGroups<Spec> choose_all_steps(
    Weights256 x, Weights256 w, const std::array<Affine, Spec::kGroups>& lines, HalfScale d,
    HalfScale dmin) {
  AffineGroups<Spec> block{.d = d, .dmin = dmin};
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    choose_steps<Spec>(group_args(affine_group<Spec>(x, group), affine_group<Spec>(w, group)),
                       lines[group], group, block);
  }
  return block;
}

// The code nearest to a weight, as a number.
[[nodiscard]] inline float affine_code(float x, float inverse_scale, float min, float last_code) {
  return nearest_whole(std::min(std::max((x + min) * inverse_scale, 0.0f), last_code));
}

// The weighted sums that the best d and dmin for the present codes follow from.
struct AffineBlockSums {
  double dd = 0, dm = 0, mm = 0, dx = 0, mx = 0;
};

template <class Spec>
[[nodiscard]] inline AffineBlockSums affine_sums(Weights256 x, Weights256 w,
                                                 const AffineGroups<Spec>& block) {
  AffineBlockSums sums;
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    const auto s = static_cast<float>(block.groups[group].scale);
    const auto m = static_cast<float>(block.groups[group].min);
    const float inverse = inverse_or_zero(block.scale(group));
    float q1 = 0, q2 = 0, qx = 0, w1 = 0, x1 = 0;
    for (size_t i = group * Spec::kWeights; i < (group + 1) * Spec::kWeights; ++i) {
      const float q = affine_code(x[i], inverse, block.min(group), Spec::kLastCode);
      q1 += w[i] * q;
      q2 += w[i] * q * q;
      qx += w[i] * q * x[i];
      w1 += w[i];
      x1 += w[i] * x[i];
    }
    sums.dd += static_cast<double>(s * s * q2);
    sums.dm -= static_cast<double>(s * m * q1);
    sums.mm += static_cast<double>(m * m * w1);
    sums.dx += static_cast<double>(s * qx);
    sums.mx -= static_cast<double>(m * x1);
  }
  return sums;
}

template <class Spec>
[[nodiscard]] inline AffineGroups<Spec> encode_affine_groups(Weights256 x) {
  const std::array<float, 256> w = affine_importance<Spec>(x);
  std::array<Affine, Spec::kGroups> lines;
  float max_scale = 0;
  float max_min = 0;
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    lines[group] =
        fit_affine(affine_group<Spec>(x, group), affine_group<Spec>(Weights256(w), group),
                   {.last_code = Spec::kLastCode, .sign = OffsetSign::kNotPositive});
    max_scale = std::max(max_scale, lines[group].scale);
    max_min = std::max(max_min, -lines[group].offset);
  }
  constexpr auto kSteps = static_cast<float>(Spec::kMaxStep);
  AffineGroups<Spec> best = choose_all_steps<Spec>(x, w, lines, half_scale(max_scale / kSteps),
                                                   half_scale(max_min / kSteps));
  for (int pass = 0; pass < 2; ++pass) {
    const AffineBlockSums sums = affine_sums<Spec>(x, w, best);
    const double determinant = sums.dd * sums.mm - sums.dm * sums.dm;
    if (!(determinant > 0)) break;
    const double d = (sums.dx * sums.mm - sums.mx * sums.dm) / determinant;
    const double dmin = (sums.mx * sums.dd - sums.dx * sums.dm) / determinant;
    if (!(d > 0) || !(dmin >= 0)) break;
    const HalfScale next_d = half_scale(static_cast<float>(d));
    const HalfScale next_dmin = half_scale(static_cast<float>(dmin));
    if (next_d.bits == best.d.bits && next_dmin.bits == best.dmin.bits) break;
    const AffineGroups<Spec> next = choose_all_steps<Spec>(x, w, lines, next_d, next_dmin);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

// The codes of the block, [256].
template <class Spec>
[[nodiscard]] inline std::array<uint8_t, 256> affine_codes(Weights256 x,
                                                           const AffineGroups<Spec>& block) {
  std::array<uint8_t, 256> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t group = i / Spec::kWeights;
    codes[i] = static_cast<uint8_t>(
        affine_code(x[i], inverse_or_zero(block.scale(group)), block.min(group), Spec::kLastCode));
  }
  return codes;
}

}  // namespace godwit::quant
