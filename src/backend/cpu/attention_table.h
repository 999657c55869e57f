// The attention kernels of one instruction set as a plain table, and what they work on: the only
// part of attention that files compiled for one instruction set may include.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

inline constexpr size_t kMaxAttentionBlock = 512;  // positions
inline constexpr size_t kMaxHeadDim = 512;
// Query rows that share one pass over a block: K and V are fetched once for all of them.
inline constexpr size_t kMaxRows = 32;
// Positions of one K tile: one position per dword lane of a 512-bit register, as in weights.
inline constexpr size_t kKvTile = 16;

// Q8_0 and Q4_0: sixteen positions of 32 dimensions, as many bytes as the blocks of the file. Codes
// lie in fours of what is multiplied and added: a dword lane is a position of K (four dimensions)
// or a dimension of V (four positions). Codes of eight bits are stored plus 128.
struct KeyTileQ8 {
  uint8_t q[8][kKvTile][4];  // dimensions 4i to 4i + 3
  uint16_t d[kKvTile];       // binary16
};
struct ValueTileQ8 {
  uint8_t q[4][2][16][4];  // positions 4i to 4i + 3 of dimensions 0 to 15, then 16 to 31
  uint16_t d[kKvTile];
};
struct KeyTileQ4 {
  uint8_t q[4][kKvTile]
           [4];  // dimensions 8i to 8i + 3 in the low nibbles, the next four in the high
  uint16_t d[kKvTile];
};
// A byte is one position's, so that positions may be stored by different threads.
struct ValueTileQ4 {
  uint8_t q[4][16][4];  // positions 4i to 4i + 3; dimension l in the low nibble, l + 16 in the high
  uint16_t d[kKvTile];
};
static_assert(sizeof(KeyTileQ8) == 544 && sizeof(ValueTileQ8) == 544);
static_assert(sizeof(KeyTileQ4) == 288 && sizeof(ValueTileQ4) == 288);

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

// Memory that will be wanted next, fetched into the second-level cache meanwhile.
struct Ahead {
  const void* bytes = nullptr;
  size_t n_lines = 0;  // of 64 bytes
};

struct BlockJob {
  const void* k = nullptr;  // the block's first tile: [block / 16][head_dim][16], or of blocks:
                            // [block / 16][head_dim / 32] tiles
  const void* v = nullptr;  // [block][head_dim], or of blocks: [block / 16][head_dim / 32] tiles
  size_t head_dim = 0;
  size_t block = 0;  // positions, a multiple of kKvTile, at most kMaxAttentionBlock
  float scale = 1.0f;
  float softcap = 0.0f;            // 0: none
  const BlockRow* rows = nullptr;  // [n_rows], all of one KV head
  size_t n_rows = 0;               // at most kMaxRows
  float* scores = nullptr;         // work area, [n_rows][block]
  Ahead while_scoring;
  Ahead while_normalizing;
  Ahead while_accumulating;
};

// Index in AttentionKernels::score and accumulate.
enum class KvElement : size_t { kF32, kF16, kBf16, kQ8, kQ4 };
inline constexpr size_t kKvElements = 5;

struct AttentionKernels {
  // Indexed by KvElement of K and of V.
  void (*score[kKvElements])(const BlockJob& job);
  void (*softmax)(const BlockJob& job);
  void (*accumulate[kKvElements])(const BlockJob& job);
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
