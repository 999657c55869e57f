// How much a weight's error counts where no importance matrix says so. Large weights move a
// product more, but to count them alone would forget the many small ones. Host only.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

namespace godwit::quant {

template <size_t kSize>
[[nodiscard]] inline float mean_square(std::span<const float, kSize> x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return sum / static_cast<float>(kSize);
}

// |x| plus the root mean square: types with scale and minimum, and those of blocks of 32.
template <size_t kSize>
inline void raised_magnitudes(std::span<const float, kSize> x, std::span<float, kSize> out) {
  const float floor = std::sqrt(mean_square(x));
  for (size_t i = 0; i < kSize; ++i) out[i] = floor + std::fabs(x[i]);
}

// x * x: the K types without minimum, fine enough for the small ones to be hit anyway.
template <size_t kSize>
[[nodiscard]] inline std::array<float, kSize> squares_of(std::span<const float, kSize> x) {
  std::array<float, kSize> w;
  for (size_t i = 0; i < kSize; ++i) w[i] = x[i] * x[i];
  return w;
}

// sqrt(floor * mean square + x * x): the IQ types, as llama.cpp weighs with a matrix of ones.
template <size_t kSize>
[[nodiscard]] inline std::array<float, kSize> floored_magnitudes(std::span<const float, kSize> x,
                                                                 float floor) {
  const float least = floor * mean_square(x);
  std::array<float, kSize> w;
  for (size_t i = 0; i < kSize; ++i) w[i] = std::sqrt(least + x[i] * x[i]);
  return w;
}

}  // namespace godwit::quant
