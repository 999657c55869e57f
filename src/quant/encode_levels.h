// The values a code can stand for, in units of the scale, and the code nearest to a weight: what
// the scale searches of encode_scale.h are written over. Uniform steps (Q4_0, Q5_0, Q6_K) or a
// table of 16 values (IQ4_NL, IQ4_XS). Host only; nothing here knows a block's layout.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/encode_select.h"

namespace godwit::quant {

using Lanes = std::array<float, kLanes>;

// The nearest whole number, halves to even, for |x| < 2^22: the sum has no bits below 1.
[[nodiscard]] inline float nearest_whole(float x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

// Codes 0 .. kHigh - kLow for the values kLow .. kHigh.
template <int kLow, int kHigh>
struct UniformLevels {
  static constexpr float lowest() { return static_cast<float>(kLow); }
  static constexpr float highest() { return static_cast<float>(kHigh); }
  static constexpr float step_at_end() { return 1.0f; }

  [[nodiscard]] static uint8_t code(float x) {
    const float level = nearest_whole(std::min(std::max(x, lowest()), highest()));
    return static_cast<uint8_t>(static_cast<int>(level) - kLow);
  }
  [[nodiscard]] static float value(uint8_t code) { return static_cast<float>(code + kLow); }

  static void try_scales(const GroupArgs& group, const Lanes& inverse, ScaleLanes& out) {
    encode_kernels().try_scales(group, {lowest(), highest()}, inverse.data(), out);
  }
  static void errors(const GroupArgs& group, const Lanes& scale, const Lanes& inverse, Lanes& out) {
    encode_kernels().scale_errors(group, {lowest(), highest()}, scale.data(), inverse.data(),
                                  out.data());
  }
};

// Codes 0..15 for kValues, which rise.
template <const std::array<float, 16>& kValues>
struct TableLevels {
  static constexpr float lowest() { return kValues.front(); }
  static constexpr float highest() { return kValues.back(); }
  static constexpr float step_at_end() { return kValues[1] - kValues[0]; }

  [[nodiscard]] static uint8_t code(float x) {
    uint8_t found = 0;
    while (found < 15 && x > 0.5f * (kValues[found] + kValues[found + size_t{1}])) ++found;
    return found;
  }
  [[nodiscard]] static float value(uint8_t code) { return kValues[code]; }

  static void try_scales(const GroupArgs& group, const Lanes& inverse, ScaleLanes& out) {
    encode_kernels().try_table_scales(group, kValues.data(), inverse.data(), out);
  }
  static void errors(const GroupArgs& group, const Lanes& scale, const Lanes& inverse, Lanes& out) {
    encode_kernels().table_scale_errors(group, kValues.data(), scale.data(), inverse.data(),
                                        out.data());
  }
};

}  // namespace godwit::quant
