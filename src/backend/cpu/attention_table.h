// The attention kernels of one instruction set as a plain table, and what they work on: the only
// part of attention that files compiled for one instruction set may include.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

inline constexpr size_t kAttentionBlock = 256;  // positions
inline constexpr size_t kMaxHeadDim = 512;
// Positions of one K tile: one position per dword lane of a 512-bit register, as in weights.
inline constexpr size_t kKvTile = 16;

// A softmax not yet divided: [0] the maximum m of the scores, [1] the sum of exp(score - m), from
// kPartialAcc on the sum of exp(score - m) V, [head_dim].
inline constexpr size_t kPartialAcc = 16;
[[nodiscard]] constexpr size_t partial_floats(size_t head_dim) {
  return kPartialAcc + (head_dim + 15) / 16 * 16;
}

// A query head of a token against one block of positions.
struct BlockRow {
  const float* q = nullptr;  // [head_dim]
  float* partial = nullptr;  // partial_floats(head_dim), 64-byte aligned
  size_t begin = 0;          // the positions it sees, [begin, end) within the block, not empty
  size_t end = 0;
};

struct BlockJob {
  const void* k = nullptr;  // [kAttentionBlock / 16][head_dim][16], the block's first tile
  const void* v = nullptr;  // [kAttentionBlock][head_dim]
  size_t head_dim = 0;
  float scale = 1.0f;
  float softcap = 0.0f;            // 0: none
  const BlockRow* rows = nullptr;  // [n_rows], all of one KV head
  size_t n_rows = 0;
  float* scores = nullptr;  // work area, [n_rows][kAttentionBlock]
};

struct AttentionKernels {
  // Indexed by element type of K and of V: f32, f16, bf16.
  void (*score[3])(const BlockJob& job);
  void (*softmax)(const BlockJob& job);
  void (*accumulate[3])(const BlockJob& job);
  void (*start)(float* state, size_t head_dim);
  void (*merge)(float* state, const float* partial, size_t head_dim);
  void (*finish)(const float* state, float* out, size_t head_dim);
};

namespace generic {
extern const AttentionKernels kAttentionKernels;
}
namespace avx2 {
extern const AttentionKernels kAttentionKernels;
}
namespace avx512vnni {
extern const AttentionKernels kAttentionKernels;
}

}  // namespace godwit::cpu
