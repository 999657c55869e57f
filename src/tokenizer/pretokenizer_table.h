// The pre-tokenizers that files name (tokenizer.ggml.pre): names, patterns and what else depends on
// the name. Plain data; pretokenizer.h makes use of it. To add one: a row in the .cpp.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/spelling.h"

namespace godwit::tokenizer {

// When a word that the vocabulary holds is that token, whatever the merges say.
enum class WholeWords { kNever, kAlways, kNewlineRuns };

// Whether a beginning-of-sequence token is added.
enum class AddsBos { kIfFileSays, kUnlessFileForbids, kAlways };

struct PreTokenizerRow {
  std::string_view names;  // what files call it, separated by spaces
  // Applied in turn, each to the pieces of the one before.
  std::span<const std::string_view> patterns;
  WholeWords whole_words = WholeWords::kNever;
  AddsBos adds_bos = AddsBos::kIfFileSays;
  Spelling spelling = Spelling::kByteLevel;
};

[[nodiscard]] std::span<const PreTokenizerRow> pretokenizer_rows();

// The row with this name, or nullptr.
[[nodiscard]] const PreTokenizerRow* find_pretokenizer(std::string_view name);

}  // namespace godwit::tokenizer
