// The sixteen values of a 4-bit code where they are not evenly spaced, as functions that work on
// host and device.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "quant/codebooks.h"
#include "quant/codes.h"

namespace godwit::quant {

// The value of a code 0..15 of IQ4_NL and IQ4_XS, -127..113.
[[nodiscard]] GODWIT_HOST_DEVICE inline int iq4_value(int code) {
  static constexpr ValueTable<16> kTable = kIq4Values;
  return kTable.values[code];
}

// Twice the value of an FP4 (E2M1) code 0..15, -12..12. Code 8 is 0 like code 0, not -0.
[[nodiscard]] GODWIT_HOST_DEVICE inline int fp4_doubled_value(int code) {
  static constexpr ValueTable<16> kTable = kFp4Values;
  return kTable.values[code];
}

// out[i] = scale * value_of(q[i]) of 2n weights whose codes are in n bytes: byte i holds q[i] in
// bits 3..0 and q[n + i] in bits 7..4.
template <int n, int (*value_of)(int)>
GODWIT_HOST_DEVICE inline void decode_halves(const uint8_t* qs, float scale, float* out) {
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < n; ++i) {
      out[n * half + i] = scale * static_cast<float>(value_of(nibble_of_half(qs, half, i)));
    }
  }
}

// The mean of the squares of the values: what random_block() scales by.
template <size_t N>
[[nodiscard]] constexpr double mean_square(const ValueTable<N>& table) {
  double sum = 0;
  for (const int8_t value : table.values) sum += double{static_cast<double>(value)} * value;
  return sum / static_cast<double>(N);
}

}  // namespace godwit::quant
