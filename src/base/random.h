// Reproducible random numbers: a pure function of (seed, index), the same on every machine and in
// any order of evaluation. Used by synthetic models, tests and the sampler.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace godwit {

// SplitMix64 (Steele, Lea, Flood 2014), the finaliser applied to seed + (index+1)*golden ratio.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Uniform in [0, 1), 53 bits.
[[nodiscard]] constexpr double random_unit(uint64_t seed, uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

// A stream of the above.
class RandomStream {
 public:
  explicit constexpr RandomStream(uint64_t seed) : seed_(seed) {}
  constexpr uint64_t bits() { return random_bits(seed_, index_++); }
  constexpr double unit() { return random_unit(seed_, index_++); }
  // Sum of four uniforms, scaled to standard deviation 1: near enough to normal, and bounded.
  constexpr double bell() { return (unit() + unit() + unit() + unit() - 2.0) * 1.7320508075688772; }
  // Uniform in [0, n), n > 0; the bias of the modulo is below 2^-32 for n < 2^32.
  constexpr uint64_t below(uint64_t n) { return bits() % n; }

 private:
  uint64_t seed_;
  uint64_t index_ = 0;
};

}  // namespace godwit
