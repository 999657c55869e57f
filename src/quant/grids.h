// What the grid types IQ1_*, IQ2_* and IQ3_* share: their codebooks as bytes, their signs and their
// scales. A grid is a list of points; a block names a point per 8 (IQ3: 4) weights by its number.
//
// Points of IQ2 and IQ3 are magnitudes: a byte of signs per 8 weights goes with them, bit i set
// when weight i is negative. Points of IQ1 are -1, 0, 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/host_device.h"
#include "quant/codebooks.h"

namespace godwit::quant {

template <size_t N, size_t n>
struct Grid {
  alignas(64) int8_t points[N][n];
};

// The points of a codebook: n = 8 weights of 2 bits or n = 4 of 3.
template <size_t n, size_t N, size_t n_levels>
[[nodiscard]] GODWIT_HOST_DEVICE constexpr Grid<N, n> expand_grid(
    const CodeTable<N>& table, const ValueTable<n_levels>& levels) {
  static_assert(n == 4 || n == 8);
  constexpr size_t kBits = n == 8 ? 2 : 3;
  Grid<N, n> grid{};
  for (size_t point = 0; point < N; ++point) {
    for (size_t i = 0; i < n; ++i) {
      const int level = (table.codes[point] >> (kBits * i)) & ((1 << kBits) - 1);
      grid.points[point][i] = levels.values[level];
    }
  }
  return grid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<2048, 8>& iq1_grid() {
  static constexpr Grid<2048, 8> kGrid = expand_grid<8>(kIq1Codes, kIq1Levels);
  return kGrid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<256, 8>& iq2_xxs_grid() {
  static constexpr Grid<256, 8> kGrid = expand_grid<8>(kIq2XxsCodes, kIq2Levels);
  return kGrid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<512, 8>& iq2_xs_grid() {
  static constexpr Grid<512, 8> kGrid = expand_grid<8>(kIq2XsCodes, kIq2Levels);
  return kGrid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<1024, 8>& iq2_s_grid() {
  static constexpr Grid<1024, 8> kGrid = expand_grid<8>(kIq2SCodes, kIq2Levels);
  return kGrid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<256, 4>& iq3_xxs_grid() {
  static constexpr Grid<256, 4> kGrid = expand_grid<4>(kIq3XxsCodes, kIq3XxsLevels);
  return kGrid;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline const Grid<512, 4>& iq3_s_grid() {
  static constexpr Grid<512, 4> kGrid = expand_grid<4>(kIq3SCodes, kIq3SLevels);
  return kGrid;
}

// The mean of the squares of all weights of all points: what random_block() scales by.
template <size_t n_levels, size_t N>
[[nodiscard]] constexpr double grid_mean_square(const CodeTable<N>& table,
                                                const ValueTable<n_levels>& levels) {
  constexpr size_t n = n_levels == 8 ? 4 : 8;
  const Grid<N, n> grid = expand_grid<n>(table, levels);
  int sum = 0;
  for (size_t point = 0; point < N; ++point) {
    for (const int8_t weight : grid.points[point]) sum += weight * weight;
  }
  return static_cast<double>(sum) / static_cast<double>(N * n);
}

// The byte of signs that a 7-bit code 0..127 stands for: the eighth sign makes the number of
// negative weights even.
[[nodiscard]] GODWIT_HOST_DEVICE inline uint8_t even_signs(uint32_t code) {
  uint32_t parity = code ^ (code >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return static_cast<uint8_t>(code | (parity & 1) << 7);
}

// The word that IQ2_XXS and IQ3_XXS have per 32 weights: bits 7j+6..7j (j = 0..3) the code of the
// signs of weights 8j..8j+7, bits 31..28 the scale.
struct SignWord {
  uint32_t bits = 0;

  [[nodiscard]] GODWIT_HOST_DEVICE uint8_t signs(int j) const {
    return even_signs((bits >> (7 * j)) & 0x7f);
  }
  [[nodiscard]] GODWIT_HOST_DEVICE int scale() const { return static_cast<int>(bits >> 28); }
};

// From its four bytes, little endian, of any alignment.
[[nodiscard]] GODWIT_HOST_DEVICE inline SignWord load_sign_word(const uint8_t* bytes) {
  return {bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24};
}

// The factor of the magnitudes for a scale s = 0..15. All are exact in f32, and so is their product
// with a magnitude (11 + 5 + 6 bits).
[[nodiscard]] GODWIT_HOST_DEVICE inline float iq2_scale(float d, int s) {
  return d * (0.5f + static_cast<float>(s)) * 0.25f;
}
[[nodiscard]] GODWIT_HOST_DEVICE inline float iq3_xxs_scale(float d, int s) {
  return d * (0.5f + static_cast<float>(s)) * 0.5f;
}
[[nodiscard]] GODWIT_HOST_DEVICE inline float iq3_s_scale(float d, int s) {
  return d * static_cast<float>(1 + 2 * s);
}
// The mean square of s + 0.5 for a uniform s.
inline constexpr double kGridScaleMeanSquare = 85.25;

// out[i] = scale * point[i], negative where bit i of signs is set.
template <size_t n>
GODWIT_HOST_DEVICE inline void decode_signed_point(const int8_t (&point)[n], int signs, float scale,
                                                   float* out) {
  for (size_t i = 0; i < n; ++i) {
    const float magnitude = scale * static_cast<float>(point[i]);
    const uint32_t sign = ((static_cast<uint32_t>(signs) >> i) & 1) << 31;
    out[i] = bit_cast_hd<float>(bit_cast_hd<uint32_t>(magnitude) ^ sign);
  }
}

// out[i] = scale * (point[i] +- 1/8), minus where the bit `shift` is set: IQ1_S and IQ1_M. Exact.
GODWIT_HOST_DEVICE inline void decode_shifted_point(const int8_t (&point)[8], int shift_is_down,
                                                    float scale, float* out) {
  const float shift = shift_is_down != 0 ? -0.125f : 0.125f;
  for (int i = 0; i < 8; ++i) out[i] = scale * (static_cast<float>(point[i]) + shift);
}

}  // namespace godwit::quant
