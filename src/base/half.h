// IEEE binary16 and bfloat16 as bit patterns, with exact widening and round-to-nearest-even
// narrowing, bit-identical to the hardware's conversions (NaN payloads quietened alike).
// Works on host and device; g++ 12 has no __bf16 in C++.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/host_device.h"

namespace godwit {

[[nodiscard]] GODWIT_HOST_DEVICE inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) {
    // Infinity, or NaN made quiet as vcvtph2ps does.
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return bit_cast_hd<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24 is exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return bit_cast_hd<float>(sign | bit_cast_hd<uint32_t>(magnitude));
  }
  return bit_cast_hd<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t f32_to_f16(float f) {
  const uint32_t bits = bit_cast_hd<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to inf
  if (magnitude < 0x38800000u) {
    // Subnormal result: adding 0.5 puts the 10 kept bits at the bottom, rounded to nearest even.
    const float shifted = bit_cast_hd<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bit_cast_hd<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

[[nodiscard]] GODWIT_HOST_DEVICE inline float bf16_to_f32(uint16_t h) {
  return bit_cast_hd<float>(static_cast<uint32_t>(h) << 16);
}

[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t f32_to_bf16(float f) {
  const uint32_t bits = bit_cast_hd<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace godwit
