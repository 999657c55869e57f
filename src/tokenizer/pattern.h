// One regular expression of a pre-tokenizer, compiled by PCRE2 (Unicode, just-in-time where the
// machine allows). Immutable, so any number of threads may use one. Matching is bounded in steps,
// stack and memory; a text that exceeds a bound stays one piece from there on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"

namespace godwit::tokenizer {

class Pattern {
 public:
  // `regex` is one of our own constants: one that does not compile is a programmer's error.
  // \s and \S mean Unicode White_Space here, exactly (expand_white_space).
  explicit Pattern(std::string_view regex);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Cuts each piece into matches and what lies between them, in order, none of them empty. A match
  // sees its piece and nothing beyond. `text` is valid UTF-8, pieces begin and end at characters.
  [[nodiscard]] std::vector<TextRange> cut(std::string_view text,
                                           std::span<const TextRange> pieces) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The regex with \s and \S written out as classes. PCRE2's own \s also holds U+180E, which neither
// llama.cpp nor the tokenizers library counts as white space.
[[nodiscard]] std::string expand_white_space(std::string_view regex);

}  // namespace godwit::tokenizer
