// Strong types for things that are all integers, so that one cannot be passed for another.
#pragma once

#include <compare>
#include <cstdint>

namespace godwit {

// An id in a tokenizer's vocabulary. kNone stands for "this model has no such token".
struct TokenId {
  int32_t value = -1;

  [[nodiscard]] constexpr bool exists() const { return value >= 0; }
  friend constexpr auto operator<=>(TokenId, TokenId) = default;
};
inline constexpr TokenId kNoToken{-1};

// Zero-based place of a token in a sequence.
struct Position {
  int32_t value = 0;

  friend constexpr auto operator<=>(Position, Position) = default;
};

}  // namespace godwit
