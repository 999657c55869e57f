// Drafts by prompt lookup: what followed the last tokens where they stood before is proposed to
// follow again. Works on text that repeats itself or its prompt (code being edited, quotations,
// tables). An index from short runs of tokens to where each ended last, brought up to date as
// tokens come: constant time per token, memory of a fixed size. Never runs the model.
// Called by engine/speculate.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace godwit::engine {

struct Draft {
  std::vector<TokenId> tokens;
  size_t match_length = 0;  // tokens of the history that the find rests on; 0: nothing found
};

class DraftLookup {
 public:
  static constexpr size_t kMinMatch = 2;
  static constexpr size_t kMaxMatch = 4;

  // `n_tokens`: how long the history may become; sizes the index up to a bound.
  explicit DraftLookup(size_t n_tokens);

  // Up to `n_max` tokens to follow `history`, by its longest match, the latest of equals. A find
  // that reaches the end of the history goes on into what it proposes itself, as a loop does.
  // `history` must begin with that of the call before.
  [[nodiscard]] Draft propose(std::span<const TokenId> history, size_t n_max);

 private:
  // Where a run of some length was last followed by a token: that token's index, 0 for none. A run
  // takes the slot of another of the same hash; what is found is compared before it is believed.
  using Slots = std::vector<uint32_t>;

  void index(std::span<const TokenId> history);
  [[nodiscard]] size_t slot_of(std::span<const TokenId> run) const;

  std::array<Slots, kMaxMatch - kMinMatch + 1> slots_;  // by length
  size_t n_indexed_ = 0;  // tokens whose place after the runs before them is in the index
};

}  // namespace godwit::engine
