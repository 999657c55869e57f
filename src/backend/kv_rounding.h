// The types that caches of keys and values may have, and how numbers are rounded to those of
// blocks: one rule for every backend, so that what they keep can be compared and exchanged. No
// search: this runs for every token. Codes are relative to the scale as it is stored, to the
// nearest, ties to even.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/half.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "quant/q4_0.h"
#include "quant/q8_0.h"

namespace godwit::backend {

// What the cpu and the reference backends keep, keys and values in any pair.
inline constexpr auto kKvTypes = std::to_array<TensorType>(
    {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0, TensorType::kQ4_0});

// Errors: another type, or one whose blocks heads of so many dimensions do not fill.
[[nodiscard]] inline Status check_kv(TensorType type, size_t head_dim) {
  if (std::ranges::find(kKvTypes, type) == kKvTypes.end()) {
    return fail("KV type {} is not supported; F32, F16, BF16, Q8_0 and Q4_0 are",
                tensor_type_name(type));
  }
  const size_t block = tensor_geometry(type).block_weights;
  if (head_dim % block != 0) {
    return fail("KV type {} has blocks of {} numbers, which heads of {} dimensions do not fill",
                tensor_type_name(type), block, head_dim);
  }
  return {};
}

namespace kv_rounding {

// The number of largest magnitude, the first of equals; NaN if there is a NaN or an infinity, so
// that a block of them decodes to NaN.
[[nodiscard]] inline float largest(std::span<const float, 32> x) {
  float found = 0.0f;
  float spoilt = 0.0f;
  for (const float value : x) {
    spoilt += value * 0.0f;
    if (std::abs(value) > std::abs(found)) found = value;
  }
  return found + spoilt;
}

struct Scale {
  uint16_t bits;
  float inverse;  // 0 where all codes are to be 0
};

[[nodiscard]] inline Scale stored(float scale) {
  const uint16_t bits = f32_to_f16(scale);
  const float value = f16_to_f32(bits);
  return {.bits = bits, .inverse = std::abs(value) > 0.0f ? 1.0f / value : 0.0f};
}

// The nearest whole number of one within [low, high]; low where it is NaN.
[[nodiscard]] inline int32_t nearest(float x, float low, float high) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds
  const float within = std::min(std::max(low, x), high);
  return std::bit_cast<int32_t>(within + kMagic) - std::bit_cast<int32_t>(kMagic);
}

}  // namespace kv_rounding

inline void round_kv(std::span<const float, 32> x, quant::BlockQ8_0& out) {
  const auto scale = kv_rounding::stored(std::abs(kv_rounding::largest(x)) / 127.0f);
  out.d = scale.bits;
  for (size_t i = 0; i < 32; ++i) {
    out.qs[i] = static_cast<int8_t>(kv_rounding::nearest(x[i] * scale.inverse, -127.0f, 127.0f));
  }
}

// The largest magnitude becomes -8: of the sixteen codes that one is farthest from zero.
inline void round_kv(std::span<const float, 32> x, quant::BlockQ4_0& out) {
  const auto scale = kv_rounding::stored(kv_rounding::largest(x) / -8.0f);
  out.d = scale.bits;
  const auto code = [&](size_t i) {
    return static_cast<uint32_t>(kv_rounding::nearest(x[i] * scale.inverse, -8.0f, 7.0f) + 8);
  };
  for (size_t i = 0; i < 16; ++i) {
    out.qs[i] = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
  }
}

}  // namespace godwit::backend
