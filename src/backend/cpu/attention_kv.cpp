// The KV cache's layout: how one position of one head gets in and out.
#include <array>

#include "backend/cpu/attention.h"
#include "backend/cpu/vector_ops.h"
#include "base/check.h"
#include "base/half.h"

namespace godwit::cpu {
namespace {

// Index of the first number of (kv_head, position) in K; the others follow kKvTile apart.
size_t k_index(const KvCache& cache, size_t kv_head, size_t position) {
  const size_t tile = (kv_head * cache.capacity + position) / kKvTile;
  return tile * cache.head_dim * kKvTile + position % kKvTile;
}

size_t v_index(const KvCache& cache, size_t kv_head, size_t position) {
  return (kv_head * cache.capacity + position) * cache.head_dim;
}

void narrow(TensorType type, const float* x, uint16_t* out, size_t n, Isa isa) {
  const VectorOps& ops = vector_ops(isa);
  (type == TensorType::kF16 ? ops.f32_to_f16 : ops.f32_to_bf16)(x, out, n);
}

template <class Element>
void scatter(const Element* x, Element* tile, size_t n) {
  for (size_t d = 0; d < n; ++d) tile[d * kKvTile] = x[d];
}

float widen(TensorType type, const std::byte* data, size_t index) {
  if (type == TensorType::kF32) return reinterpret_cast<const float*>(data)[index];
  const uint16_t word = reinterpret_cast<const uint16_t*>(data)[index];
  return type == TensorType::kF16 ? f16_to_f32(word) : bf16_to_f32(word);
}

}  // namespace

void kv_store(const KvCache& cache, size_t kv_head, size_t position, const float* k, const float* v,
              Isa isa) {
  const size_t n = cache.head_dim;
  const size_t k_at = k_index(cache, kv_head, position);
  const size_t v_at = v_index(cache, kv_head, position);
  if (cache.k_type == TensorType::kF32) {
    scatter(k, reinterpret_cast<float*>(cache.k) + k_at, n);
  } else {
    std::array<uint16_t, kMaxHeadDim> words;
    narrow(cache.k_type, k, words.data(), n, isa);
    scatter(words.data(), reinterpret_cast<uint16_t*>(cache.k) + k_at, n);
  }
  if (cache.v_type == TensorType::kF32) {
    float* const to = reinterpret_cast<float*>(cache.v) + v_at;
    for (size_t d = 0; d < n; ++d) to[d] = v[d];
  } else {
    narrow(cache.v_type, v, reinterpret_cast<uint16_t*>(cache.v) + v_at, n, isa);
  }
}

void kv_read(const KvCache& cache, size_t kv_head, size_t position, std::span<float> k,
             std::span<float> v) {
  check(k.size() == cache.head_dim && v.size() == cache.head_dim, "kv_read takes whole heads");
  const size_t k_at = k_index(cache, kv_head, position);
  const size_t v_at = v_index(cache, kv_head, position);
  for (size_t d = 0; d < cache.head_dim; ++d) {
    k[d] = widen(cache.k_type, cache.k, k_at + d * kKvTile);
    v[d] = widen(cache.v_type, cache.v, v_at + d);
  }
}

}  // namespace godwit::cpu
