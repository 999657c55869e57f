// Grouped-query attention of one layer over its KV cache, for one token or many. Positions are cut
// into blocks at absolute multiples of a length that the token's own position decides
// (attention_block.h); each block yields (max, sum, accumulator) per query head and token, and
// blocks are merged in ascending order. So a result is a function of the token's position alone:
// bit-equal for one token or many at a time, any number of threads, any instruction set. The
// executor appends K and V first (kv_store), then runs and merges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/attention_table.h"
#include "base/bits.h"
#include "base/tensor_type.h"
#include "os/cpu_features.h"

namespace godwit::cpu {

// The keys and values of one layer. Types: F32, F16, BF16, Q8_0, Q4_0, separately.
//   K: [n_kv_heads][capacity / 16][head_dim][16 positions], V: [n_kv_heads][capacity][head_dim];
// so a vector of scores needs no sum across lanes, and nor does a vector of outputs. Of blocks,
// [n_kv_heads][capacity / 16][head_dim / 32] tiles of attention_table.h.
struct KvCache {
  std::byte* k = nullptr;  // 64-byte aligned, kv_bytes(k_type, ...) of them
  std::byte* v = nullptr;
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
  size_t n_kv_heads = 0;
  size_t head_dim = 0;  // a multiple of 8, at most kMaxHeadDim; whole blocks of both types
  size_t capacity = 0;  // positions, a multiple of kKvTile: kv_capacity(n)
};

[[nodiscard]] constexpr size_t kv_capacity(size_t n_positions) {
  return round_up(n_positions, kKvTile);
}
// Bytes of K or of V alone.
[[nodiscard]] constexpr uint64_t kv_bytes(TensorType type, size_t n_kv_heads, size_t head_dim,
                                          size_t n_positions) {
  return n_kv_heads * kv_capacity(n_positions) * row_bytes(type, head_dim);
}
// Of a type that backend::check_kv() lets pass.
[[nodiscard]] constexpr KvElement kv_element(TensorType type) {
  if (type == TensorType::kF32) return KvElement::kF32;
  if (type == TensorType::kF16) return KvElement::kF16;
  if (type == TensorType::kBF16) return KvElement::kBf16;
  return type == TensorType::kQ8_0 ? KvElement::kQ8 : KvElement::kQ4;
}

// Rounds one position of one KV head into the cache, and reads it back. k, v: [head_dim] f32.
void kv_store(const KvCache& cache, size_t kv_head, size_t position, const float* k, const float* v,
              Isa isa);
void kv_read(const KvCache& cache, size_t kv_head, size_t position, std::span<float> k,
             std::span<float> v);
// The same as it is kept, to the bit, in the layout of backend/state.h: row_bytes(type, head_dim).
void kv_put(const KvCache& cache, size_t kv_head, size_t position, const std::byte* k,
            const std::byte* v);
void kv_get(const KvCache& cache, size_t kv_head, size_t position, std::byte* k, std::byte* v);

struct AttentionArgs {
  const float* q = nullptr;  // [n_tokens, n_heads, head_dim], turned by RoPE
  size_t q_stride = 0;       // floats from token to token
  KvCache cache;             // positions up to the last token's are filled
  size_t n_heads = 0;        // a multiple of cache.n_kv_heads
  size_t first_position = 0;
  size_t n_tokens = 1;           // at consecutive positions; token t sees positions 0 .. its own
  float scale = 1.0f;            // of q . k
  float softcap = 0.0f;          // s -> softcap * tanh(s / softcap); 0: none
  size_t window = 0;             // sees only the last `window` positions, its own included; 0: all
  size_t block = 0;              // one of kAttentionBlocks, in place of the table's choice; 0: none
  const float* sinks = nullptr;  // [n_heads]: one more score of each head, without a value; or none
  std::span<std::byte> scratch;  // attention_scratch_bytes(), 64-byte aligned
  float* out = nullptr;          // [n_tokens, n_heads, head_dim]
  size_t out_stride = 0;
};

struct AttentionNeed {
  size_t n_heads = 0;
  size_t n_kv_heads = 0;
  size_t head_dim = 0;
  size_t max_positions = 0;
  size_t max_tokens = 1;
  size_t block = 0;  // as AttentionArgs::block
};
// Scratch that suffices for every call within `need`; shared by all threads.
[[nodiscard]] size_t attention_scratch_bytes(const AttentionNeed& need);

// This thread's share of the work, cut so that shares cost about the same, for any number of heads.
void attention_run(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa);
// Positions, each counted once per KV head, that a thread's share of a call of few tokens covers:
// no more than a block from an equal part of all.
[[nodiscard]] size_t attention_share_positions(const AttentionArgs& args, size_t thread,
                                               size_t n_threads);
// After a barrier that all shares precede: this thread's share of the merge into `out`. Does
// nothing for calls of many tokens, whose shares write `out` themselves.
void attention_merge(const AttentionArgs& args, size_t thread, size_t n_threads, Isa isa);

}  // namespace godwit::cpu
