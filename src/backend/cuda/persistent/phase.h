// The table that the persistent kernel walks, in the form the card reads: a Phase is one step of
// the Program as this kernel runs it, a Shape what phases of the same kind share. Also the
// arithmetic of who does what: loader, consumers and the host's proof call the same functions.
// Plain data and pure functions, host and device; schedule.h makes the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"

namespace godwit::cuda::persistent {

// A slot is what one bulk copy brings and two warps eat: 8 rows x 1024 columns of a weight, or the
// keys and values of slot_positions(head_dim) positions of one KV head.
inline constexpr uint32_t kSlotBytes = 16384;
inline constexpr uint32_t kSlotRows = 8;
inline constexpr uint32_t kSlotColumns = 1024;
inline constexpr uint32_t kConsumerWarps = 8;
inline constexpr uint32_t kPairs = kConsumerWarps / 2;
inline constexpr uint32_t kConsumerThreads = kConsumerWarps * 32;
// And the loader's group: three of its warps do nothing, but registers move between groups of four
// (168 for each thread at the start; 240 for consumers, 24 for the loader's group afterwards).
inline constexpr uint32_t kThreads = kConsumerThreads + 128;
inline constexpr uint32_t kMaxStageChunks = 4;
inline constexpr uint32_t kMaxGroup = 8;        // query heads of one KV head
inline constexpr uint32_t kMaxPieces = 64;      // of one KV head's positions
inline constexpr uint32_t kMaxOwnedRows = 128;  // rows of a CTA with a bias or residual
// Copies of words that all CTAs await (edges.cuh); q, k, v and partials have one.
inline constexpr uint32_t kReplicas = 4;
inline constexpr uint32_t kMergeDims = 16;     // of one head, merged by one warp
inline constexpr uint32_t kPartialHeader = 4;  // words before a partial's dims: max, sum, 2 unused

enum class PhaseKind : uint32_t { kMatvec, kAttend };

// What becomes of a finished row of a mat-vec.
enum class Finish : uint32_t {
  kStore,   // out = W n + bias
  kAdd,     // out = residual + scale * (W n + bias)
  kGate,    // out = act(gate n) * (up n); a block is 4 rows of gate and the same 4 of up
  kLogits,  // logits = capped(scale * W n), plain floats, and the largest of them
};

// One version of a buffer of tagged words (edges.cuh) as a shape knows it.
struct EdgeShape {
  uint32_t offset = 0;  // words from the start of all activations
  uint32_t step = 0;    // tags that the buffer goes through in a token, mod 4

  friend bool operator==(const EdgeShape&, const EdgeShape&) = default;
};

struct Shape {
  PhaseKind kind = PhaseKind::kMatvec;
  Finish finish = Finish::kStore;
  uint32_t gelu = 0;  // kGate: 0 SiLU, 1 the tanh form of GELU

  // A mat-vec: n_blocks blocks of 8 rows, each n_chunks slots; columns are worked through in
  // stages of stage_chunks slots, the last one shorter.
  uint32_t n_blocks = 0;
  uint32_t n_chunks = 0;
  uint32_t stage_chunks = 0;
  uint32_t n_stages = 0;
  uint32_t cols = 0;         // of the input, before padding; a multiple of 32
  uint32_t rows = 0;         // words of the output, before padding
  uint32_t open_blocks = 0;  // places for partial sums, a power of two

  // Attention: KV head h's positions are cut in `pieces`; CTA h * pieces + p does piece p.
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t group = 0;  // query heads of a KV head
  uint32_t head_dim = 0;
  uint32_t pieces = 0;
  uint32_t rope_halves = 0;  // 0: dims 2i and 2i+1 turn together, 1: i and i + head_dim / 2
  uint64_t head_bytes = 0;   // of one KV head in the cache

  EdgeShape in;
  EdgeShape out;
  EdgeShape extra;       // kAdd: the residual; attention: the partials
  float epsilon = 0.0f;  // of the norm before a mat-vec, or of q
  float k_epsilon = 0.0f;
  float scale = 1.0f;    // kAdd, kLogits: of the product; attention: of q . k
  float softcap = 0.0f;  // kLogits; 0: none

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Phase {
  const std::byte* stream = nullptr;  // repacked weight (layout.h), or the layer's KV (kv_layout.h)
  const float* norm = nullptr;        // [cols], or of q [head_dim]; nullptr: none
  const float* bias = nullptr;        // [rows], or the norm of k [head_dim]; nullptr: none
  const float* rope = nullptr;        // pairs (cos, sin) [positions, head_dim / 2]; nullptr: none
  uint16_t shape = 0;
  uint16_t rotate =
      0;  // block i is done by CTA (i + rotate) mod n_ctas: evens out what is left over
  uint8_t in_tag = 0;  // of the first token; EdgeShape::step is added for each further one
  uint8_t out_tag = 0;
  uint8_t extra_tag = 0;
  uint8_t keep = 0;  // 1: ask the L2 to keep these weights for the next token
};

// Shared memory of a CTA, offsets in bytes.
struct SharedPlan {
  uint32_t ring_slots = 0;    // a multiple of kPairs: a slot must belong to the same warps for ever
  uint32_t stage_chunks = 0;  // the most of any phase
  uint32_t region_bytes = 0;  // one of the two places for an activation in operand form
  uint32_t activations = 0;
  uint32_t partial_sums = 0;
  uint32_t attention = 0;
  uint32_t owned = 0;  // residual or bias of the CTA's own rows, f32 [2, kMaxOwnedRows]
  uint32_t shapes = 0;
  uint32_t phases = 0;
  uint32_t works = 0;  // Work [phases]
  uint32_t total = 0;
};

// What one CTA does in one phase of a token, worked out once at the token's start: each of these
// costs a division of 100 cycles where it is needed, while everybody waits.
struct Work {
  uint32_t first = 0;  // block of a mat-vec, then every n_ctas-th; piece of attention
  uint32_t count = 0;  // blocks, slots of attention
  uint32_t begin = 0;  // slots of the CTA in the phases before
  uint32_t limit = 0;  // slots before the next attention after this phase, or of the token
};

// Blocks of a mat-vec that CTA `cta` of `n_ctas` does: first, then every n_ctas-th.
struct Blocks {
  uint32_t first = 0;
  uint32_t count = 0;
};

[[nodiscard]] GODWIT_HOST_DEVICE constexpr Blocks blocks_of(const Shape& shape, uint32_t rotate,
                                                            uint32_t cta, uint32_t n_ctas) {
  const uint32_t first = cta >= rotate ? cta - rotate : cta + n_ctas - rotate;
  const uint32_t count =
      first < shape.n_blocks ? (shape.n_blocks - first + n_ctas - 1) / n_ctas : 0;
  return {first, count};
}

// Slots of a block in stage s.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t stage_width(const Shape& shape, uint32_t s) {
  const uint32_t rest = shape.n_chunks - s * shape.stage_chunks;
  return rest < shape.stage_chunks ? rest : shape.stage_chunks;
}

// Index of a slot in the repacked matrix: all of a stage lies together, so that CTAs working side
// by side read side by side.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t slot_index(const Shape& shape, uint32_t stage,
                                                               uint32_t block, uint32_t chunk) {
  return stage * shape.stage_chunks * shape.n_blocks + block * stage_width(shape, stage) + chunk;
}

// Positions of one KV slot.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t slot_positions(uint32_t head_dim) {
  return kSlotBytes / (4 * head_dim);
}

// Slots that hold the positions before `position`, the last perhaps only in part.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t old_slots(const Shape& shape,
                                                              uint32_t position) {
  const uint32_t per_slot = slot_positions(shape.head_dim);
  return (position + per_slot - 1) / per_slot;
}

// A piece is every `pieces`-th slot, not a run of them: the CTAs of a head then read one
// neighbourhood at any time. 16-byte reads of one run per CTA reach 4.3 TB/s, side by side 4.6.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t piece_slots(const Shape& shape, uint32_t piece,
                                                                uint32_t position) {
  const uint32_t slots = old_slots(shape, position);
  return slots > piece ? (slots - piece - 1) / shape.pieces + 1 : 0;
}

// The piece that takes the token's own position, which no copy brings: the next in turn.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t own_piece(const Shape& shape,
                                                              uint32_t position) {
  return old_slots(shape, position) % shape.pieces;
}

// Slots that CTA `cta` eats in a phase, of a token at `position`.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t slots_of(const Shape& shape, uint32_t rotate,
                                                             uint32_t cta, uint32_t n_ctas,
                                                             uint32_t position) {
  if (shape.kind == PhaseKind::kMatvec) {
    return blocks_of(shape, rotate, cta, n_ctas).count * shape.n_chunks;
  }
  if (cta >= shape.n_kv_heads * shape.pieces) return 0;
  return piece_slots(shape, cta % shape.pieces, position);
}

// Words of one piece's partial result, rounded up so that two CTAs share no 128-byte line.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t partial_words(const Shape& shape) {
  return (shape.group * (kPartialHeader + shape.head_dim) + 31) / 32 * 32;
}

// Warps that merge partials: item i is kMergeDims dims of one query head, done by CTA i mod n_ctas.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t merge_items(const Shape& shape) {
  return shape.n_heads * (shape.head_dim / kMergeDims);
}

}  // namespace godwit::cuda::persistent
