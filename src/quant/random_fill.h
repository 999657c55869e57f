// What the random_block() functions of quant/<type>.h share: random codes, and random scales whose
// mean square is 1. Host only; used by synthetic models and tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace godwit::quant {

// n random bytes, eight per draw.
constexpr void fill_random(RandomStream& random, uint8_t* out, size_t n) {
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t bits = random.bits();
    for (size_t k = 0; k < 8 && i + k < n; ++k) out[i + k] = static_cast<uint8_t>(bits >> (8 * k));
  }
}

// Uniform in [0.75, 1.25), divided by the square root of its mean square 1 + 1/48, so that scales
// differ from block to block while the deviation of the weights stays what was asked for.
[[nodiscard]] constexpr float random_spread(RandomStream& random) {
  return static_cast<float>((0.75 + 0.5 * random.unit()) * 0.9897433186107870);
}

// The above with a random sign: makes the mean zero where codes are centred half a step off zero.
[[nodiscard]] constexpr float random_signed_spread(RandomStream& random) {
  const float sign = (random.bits() >> 63) != 0 ? -1.0f : 1.0f;
  return sign * random_spread(random);
}

// A code of an 8-bit scale whose value, of growing codes 0..last, is at random the one below or
// above `scale`, with the mean square of `scale`: for scales too coarse to round to.
template <class ValueOf>
[[nodiscard]] constexpr uint8_t random_scale_code(RandomStream& random, float scale, uint8_t last,
                                                  ValueOf value_of) {
  uint8_t below = 0;
  uint8_t above = last;
  while (above - below > 1) {
    const auto middle = static_cast<uint8_t>((below + above) / 2);
    (value_of(middle) <= scale ? below : above) = middle;
  }
  const double low = static_cast<double>(value_of(below)) * static_cast<double>(value_of(below));
  const double high = static_cast<double>(value_of(above)) * static_cast<double>(value_of(above));
  const double wanted = static_cast<double>(scale) * static_cast<double>(scale);
  return random.unit() * (high - low) < wanted - low ? above : below;
}

}  // namespace godwit::quant
