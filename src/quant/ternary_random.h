// Random codes for the types whose 2-bit codes stand for -1, 0, 1 and 2 (Q2_0, TQ2_0), with a mean
// of zero though 2 has no counterpart. Host only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace godwit::quant {

// Of eight codes, four are 0 (-1), one 1, two 2 (1) and one 3 (2): mean 0, this mean square.
inline constexpr double kRandomTernaryMeanSquare = (4.0 * 1.0 + 2.0 * 1.0 + 1.0 * 4.0) / 8.0;

// n bytes of four codes each.
inline void fill_random_ternary(RandomStream& random, uint8_t* out, size_t n) {
  static constexpr uint8_t kCodes[8] = {0, 0, 0, 0, 1, 2, 2, 3};
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = random.bits();
    unsigned byte = 0;
    for (unsigned k = 0; k < 4; ++k) byte |= unsigned{kCodes[(bits >> (3 * k)) & 7]} << (2 * k);
    out[i] = static_cast<uint8_t>(byte);
  }
}

}  // namespace godwit::quant
