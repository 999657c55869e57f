// Text in which some ranges came from outside (a user's message, a tool's result). The chat
// template writes it, the tokenizer reads it: special tokens are recognised only outside the
// marked ranges, while ordinary merges run across their borders.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace godwit {

struct TextRange {
  size_t begin = 0;  // bytes
  size_t end = 0;    // one past the last byte

  friend bool operator==(const TextRange&, const TextRange&) = default;
};

struct MarkedText {
  std::string text;
  std::vector<TextRange> user_ranges;  // ascending, disjoint, not empty
};

}  // namespace godwit
