// Groups that share one scale d through whole-number scales of their own, weight = d * s * level:
// the search that Q6_K and IQ4_XS share. Host only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/encode_half.h"
#include "quant/encode_scale.h"

namespace godwit::quant {

// kLowest: the lowest whole-number scale, which the group with the largest scale gets; the highest
// is -kLowest - 1.
template <class LevelsOf, size_t kGroupsOf, size_t kWeightsOf, int kLowestOf>
struct ScaledGroupsSpec {
  using Levels = LevelsOf;
  static constexpr size_t kGroups = kGroupsOf;
  static constexpr size_t kWeights = kWeightsOf;  // of a group
  static constexpr int kLowest = kLowestOf;
  static constexpr size_t kSize = kGroups * kWeights;
};

template <class Spec>
struct ScaledGroups {
  HalfScale d;
  std::array<int, Spec::kGroups> scales{};
  double error = 0;
};

template <class Spec>
using ScaledBlock = std::span<const float, Spec::kSize>;

template <class Spec>
[[nodiscard]] inline std::span<const float, Spec::kWeights> scaled_group(ScaledBlock<Spec> block,
                                                                         size_t group) {
  return block.subspan(group * Spec::kWeights).template first<Spec::kWeights>();
}

// Fills in the scales around exact / d that give the least error.
template <class Spec>
inline void choose_scales(ScaledBlock<Spec> x, ScaledBlock<Spec> w,
                          const std::array<float, Spec::kGroups>& exact,
                          ScaledGroups<Spec>& block) {
  block.error = 0;
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    const float steps = block.d.value != 0 ? exact[group] / block.d.value : 0.0f;
    const auto lowest = static_cast<float>(Spec::kLowest);
    const auto nearest =
        static_cast<int>(nearest_whole(std::min(std::max(steps, lowest), -lowest - 1.0f)));
    std::array<int, kLanes> scales{};
    Lanes values{};
    for (int k = 0; k < static_cast<int>(kLanes); ++k) {
      const auto lane = static_cast<size_t>(k);
      scales[lane] = std::clamp(nearest + k - 3, Spec::kLowest, -Spec::kLowest - 1);
      values[lane] = block.d.value * static_cast<float>(scales[lane]);
    }
    const Lanes errors = scale_errors<typename Spec::Levels>(
        group_args(scaled_group<Spec>(x, group), scaled_group<Spec>(w, group)), values);
    const size_t best =
        static_cast<size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
    block.scales[group] = scales[best];
    block.error += static_cast<double>(errors[best]);
  }
}

// The code nearest to x at a scale that may be zero.
template <class Levels>
[[nodiscard]] inline uint8_t code_at(float x, float scale) {
  return Levels::code(x * inverse_or_zero(scale));
}

// The best d for the codes that the present one leads to.
template <class Spec>
[[nodiscard]] inline float refit_d(ScaledBlock<Spec> x, ScaledBlock<Spec> w,
                                   const ScaledGroups<Spec>& block) {
  double qq = 0;
  double qx = 0;
  for (size_t i = 0; i < Spec::kSize; ++i) {
    const auto s = static_cast<float>(block.scales[i / Spec::kWeights]);
    const float q =
        s * Spec::Levels::value(code_at<typename Spec::Levels>(x[i], block.d.value * s));
    qq += static_cast<double>(w[i] * q * q);
    qx += static_cast<double>(w[i] * q * x[i]);
  }
  return qq > 0 ? static_cast<float>(qx / qq) : 0.0f;
}

template <class Spec>
[[nodiscard]] inline ScaledGroups<Spec> encode_scaled_groups(ScaledBlock<Spec> x,
                                                             ScaledBlock<Spec> w) {
  std::array<float, Spec::kGroups> exact{};
  for (size_t group = 0; group < Spec::kGroups; ++group) {
    exact[group] = fit_scale<typename Spec::Levels>(scaled_group<Spec>(x, group),
                                                    scaled_group<Spec>(w, group));
  }
  ScaledGroups<Spec> best;
  best.d = half_scale(largest_magnitude(exact) / static_cast<float>(Spec::kLowest));
  choose_scales<Spec>(x, w, exact, best);
  for (int pass = 0; pass < 2; ++pass) {
    ScaledGroups<Spec> next;
    next.d = half_scale(refit_d<Spec>(x, w, best));
    if (next.d.bits == best.d.bits) break;
    choose_scales<Spec>(x, w, exact, next);
    if (next.error >= best.error) break;
    best = next;
  }
  return best;
}

// The codes of the block, [kSize].
template <class Spec>
[[nodiscard]] inline std::array<uint8_t, Spec::kSize> scaled_codes(
    ScaledBlock<Spec> x, const ScaledGroups<Spec>& block) {
  using Levels = typename Spec::Levels;
  std::array<uint8_t, Spec::kSize> codes;
  for (size_t i = 0; i < Spec::kSize; ++i) {
    const float scale = block.d.value * static_cast<float>(block.scales[i / Spec::kWeights]);
    codes[i] = code_at<Levels>(x[i], scale);
  }
  return codes;
}

}  // namespace godwit::quant
