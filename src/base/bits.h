// Arithmetic on sizes that come from outside: sums and products that say when they overflow,
// rounding up to a power of two, and reinterpretation of bits on host and device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/host_device.h"

namespace godwit {

[[nodiscard]] constexpr std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

[[nodiscard]] constexpr bool is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// n rounded up to a multiple of `multiple`. The caller guarantees that the sum does not overflow.
[[nodiscard]] constexpr uint64_t round_up(uint64_t n, uint64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

[[nodiscard]] constexpr uint64_t div_up(uint64_t n, uint64_t divisor) {
  return (n + divisor - 1) / divisor;
}

// std::bit_cast that nvcc accepts on the device.
template <class To, class From>
[[nodiscard]] GODWIT_HOST_DEVICE inline To bit_cast_hd(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

}  // namespace godwit
