// What the weights and the cached keys and values of a graded model are: a function of (rule, row,
// column) alone, the same bits on the host, on the device and in tools/megakernel_reference.py.
// Random values are SplitMix64 of (seed, row * cols + column): its upper 24 bits as a number in
// [-1, 1), times half_width, plus offset, each operation rounded to f32, then rounded to bf16.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"

namespace godwit::grader {

struct ValueRule {
  enum class Kind : uint8_t {
    kUniform,     // random in offset -+ half_width
    kConstant,    // offset
    kIdentity,    // offset where row == column, else 0
    kHeadColumn,  // offset where column == first and row % head_dim is `second` or `third`, else 0
    kStaircase,   // offset where first <= column <= first + row, else 0
  };
  Kind kind = Kind::kConstant;
  uint64_t seed = 0;
  float half_width = 0.0f;
  float offset = 0.0f;
  uint64_t head_dim = 1;
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t third = 0;
};

// In [-1, 1), a multiple of 2^-23.
[[nodiscard]] GODWIT_HOST_DEVICE inline float signed_unit(uint64_t seed, uint64_t index) {
  const auto high = static_cast<int32_t>(random_bits(seed, index) >> 40);
  return static_cast<float>(high - (1 << 23)) * 0x1p-23f;
}

[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t bf16_value(const ValueRule& rule, uint64_t row,
                                                            uint64_t column, uint64_t n_columns) {
  switch (rule.kind) {
    case ValueRule::Kind::kUniform: {
      const float scaled = signed_unit(rule.seed, row * n_columns + column) * rule.half_width;
#ifdef __CUDA_ARCH__
      return f32_to_bf16(__fadd_rn(scaled, rule.offset));  // never one fused operation
#else
      return f32_to_bf16(scaled + rule.offset);
#endif
    }
    case ValueRule::Kind::kConstant:
      return f32_to_bf16(rule.offset);
    case ValueRule::Kind::kIdentity:
      return f32_to_bf16(row == column ? rule.offset : 0.0f);
    case ValueRule::Kind::kHeadColumn: {
      const uint64_t dim = row % rule.head_dim;
      const bool here = column == rule.first && (dim == rule.second || dim == rule.third);
      return f32_to_bf16(here ? rule.offset : 0.0f);
    }
    case ValueRule::Kind::kStaircase:
      return f32_to_bf16(column >= rule.first && column <= rule.first + row ? rule.offset : 0.0f);
  }
  return 0;
}

// Keys and values of cached positions. `kind` says of what; index of a random value:
// (position * n_kv_heads + head) * head_dim + dim, of a seed per layer and part.
struct CacheRule {
  enum class Kind : uint8_t {
    kRandom,    // K and V uniform
    kCounting,  // K zero; V one-hot: position p < length lights dimension bucket_of(p)
    kNeedles,   // K zero, V uniform
  };
  Kind kind = Kind::kRandom;
  uint64_t seed = 0;
  float k_half_width = 0.0f;
  float v_half_width = 0.0f;
  uint64_t length = 0;  // kCounting
};

inline constexpr uint64_t kCountingBuckets = 32;
// The cache's seeds lie beyond those of any model's tensors.
inline constexpr uint64_t kCacheSeedBase = 1u << 20;

// Buckets are runs of positions, so that a lost split empties some; each KV head begins with
// another, so that a head that looks at the wrong one shows.
[[nodiscard]] GODWIT_HOST_DEVICE inline uint64_t bucket_of(uint64_t position, uint64_t length,
                                                           uint64_t kv_head) {
  return (position * kCountingBuckets / length + 5 * kv_head) % kCountingBuckets;
}

enum class CachePart : uint8_t { kKey, kValue };

struct CachePlace {
  uint64_t layer = 0;
  CachePart part = CachePart::kKey;
  uint64_t position = 0;
  uint64_t kv_head = 0;
  uint64_t dim = 0;
};

[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t cache_value(const CacheRule& rule,
                                                             const CachePlace& place,
                                                             uint64_t n_kv_heads,
                                                             uint64_t head_dim) {
  const bool is_key = place.part == CachePart::kKey;
  if (rule.kind == CacheRule::Kind::kCounting) {
    const bool lit = !is_key && place.position < rule.length &&
                     bucket_of(place.position, rule.length, place.kv_head) == place.dim;
    return f32_to_bf16(lit ? 1.0f : 0.0f);
  }
  if (rule.kind == CacheRule::Kind::kNeedles && is_key) return 0;
  const uint64_t seed = random_bits(rule.seed, kCacheSeedBase + 2 * place.layer + (is_key ? 0 : 1));
  const uint64_t index = (place.position * n_kv_heads + place.kv_head) * head_dim + place.dim;
  return f32_to_bf16(signed_unit(seed, index) * (is_key ? rule.k_half_width : rule.v_half_width));
}

}  // namespace godwit::grader
