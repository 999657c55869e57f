// How long the blocks are into which attention cuts the positions that a token sees: a function of
// the token's own position and nothing else, so that a result does not depend on how rows are
// grouped into calls. The lengths are measured ones (docs/DECISIONS.md has the numbers).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_table.h"
#include "base/bits.h"
#include "base/result.h"

namespace godwit::cpu {

// What may be asked for in place of the table's choice (GODWIT_ATTENTION_BLOCK).
inline constexpr auto kAttentionBlocks = std::to_array<size_t>({64, 128, 256, 512});
static_assert(kAttentionBlocks.back() == kMaxAttentionBlock);

struct BlockLength {
  size_t from_position;
  size_t length;
};
inline constexpr auto kBlockLengths = std::to_array<BlockLength>({{0, 256}, {16384, 512}});
static_assert(kBlockLengths.front().from_position == 0);
static_assert(std::ranges::is_sorted(kBlockLengths, {}, &BlockLength::from_position));

// Of a token at `position`; `forced` other than 0 comes first.
[[nodiscard]] constexpr size_t attention_block(size_t position, size_t forced) {
  if (forced != 0) return forced;
  size_t length = kBlockLengths.front().length;
  for (const BlockLength& row : kBlockLengths) {
    if (position >= row.from_position) length = row.length;
  }
  return length;
}

// The first position after `position` whose blocks are of another length; the largest size_t where
// there is none.
[[nodiscard]] constexpr size_t next_block_change(size_t position, size_t forced) {
  if (forced == 0) {
    for (const BlockLength& row : kBlockLengths) {
      if (row.from_position > position) return row.from_position;
    }
  }
  return SIZE_MAX;
}

// The most blocks that a token at one of the first n positions has.
[[nodiscard]] constexpr size_t most_attention_blocks(size_t n_positions, size_t forced) {
  if (n_positions == 0) return 1;
  size_t most = div_up(n_positions, attention_block(n_positions - 1, forced));
  for (const BlockLength& row : kBlockLengths) {
    if (row.from_position == 0 || row.from_position > n_positions) continue;
    const size_t last = row.from_position;  // positions seen by the last token before the change
    const size_t n = div_up(last, attention_block(last - 1, forced));
    most = n > most ? n : most;
  }
  return most;
}

// What GODWIT_ATTENTION_BLOCK asks for; 0 where it is not set. Errors: none of kAttentionBlocks.
[[nodiscard]] Result<size_t> forced_attention_block();

}  // namespace godwit::cpu
