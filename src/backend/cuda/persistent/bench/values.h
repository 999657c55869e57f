// The random values of megakernel_bench: every element of a weight or cache is a function of its
// index, the same on the host and on the card.
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/tensor_type.h"

namespace godwit::cuda::persistent {

// Uniform in [-1, 1), 16 bits of it.
[[nodiscard]] GODWIT_HOST_DEVICE inline float noise(uint64_t stream, uint64_t index) {
  uint64_t h = (index + 1) * 0x9e3779b97f4a7c15ull ^ (stream + 1) * 0xd1b54a32d192ed03ull;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return static_cast<float>(static_cast<int32_t>(h & 0xffffu) - 32768) * (1.0f / 32768.0f);
}

[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t narrowed(float v, TensorType type) {
  return type == TensorType::kBF16 ? f32_to_bf16(v) : f32_to_f16(v);
}
[[nodiscard]] GODWIT_HOST_DEVICE inline float widened(uint16_t v, TensorType type) {
  return type == TensorType::kBF16 ? bf16_to_f32(v) : f16_to_f32(v);
}

inline constexpr float kMatrixScale = 0.035f;  // a deviation of 0.02
inline constexpr uint64_t kKvStream = 1'000'000;

// Element of a 16-bit matrix, of an f32 vector (norms lie about 1), of a KV cache.
[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t matrix_bits(uint64_t id, uint64_t index,
                                                             TensorType type) {
  return narrowed(noise(id, index) * kMatrixScale, type);
}
[[nodiscard]] GODWIT_HOST_DEVICE inline float vector_value(uint64_t id, uint64_t index) {
  return 1.0f + 0.25f * noise(id, index);
}
[[nodiscard]] GODWIT_HOST_DEVICE inline uint16_t kv_bits(uint64_t layer, uint64_t index,
                                                         TensorType type) {
  return narrowed(noise(kKvStream + layer, index), type);
}

}  // namespace godwit::cuda::persistent
