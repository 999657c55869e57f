#include "tokenizer/pretokenizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/pattern.h"
#include "tokenizer/pretokenizer_table.h"
#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

// A copy in which every byte outside valid UTF-8 is U+0001: a character of one byte that is neither
// letter, number, punctuation nor white space, as U+FFFD is none, so that places stay the same.
std::string with_bad_bytes_masked(std::string_view text) {
  std::string masked(text);
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.kind != Utf8Kind::kCharacter) masked.replace(at, step.bytes, step.bytes, '\x01');
    at += step.bytes;
  }
  return masked;
}

}  // namespace

struct PreTokenizer::Impl {
  std::vector<Pattern> patterns;
  const PreTokenizerRow* row;
};

PreTokenizer::PreTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::make(std::string_view name) {
  const PreTokenizerRow* row = find_pretokenizer(name.empty() ? "default" : name);
  if (row == nullptr) {
    return fail(
        "tokenizer: pre-tokenizer '{}' is not supported (tokenizer.ggml.pre); supported: {}", name,
        supported_pretokenizers());
  }
  auto impl = std::make_unique<Impl>();
  for (const std::string_view regex : row->patterns) impl->patterns.emplace_back(regex);
  impl->row = row;
  return PreTokenizer(std::move(impl));
}

std::vector<TextRange> PreTokenizer::split(std::string_view text) const {
  if (text.empty()) return {};
  const std::string masked = with_bad_bytes_masked(text);
  std::vector<TextRange> pieces{{0, masked.size()}};
  for (const Pattern& pattern : impl_->patterns) pieces = pattern.cut(masked, pieces);
  return pieces;
}

bool PreTokenizer::looks_up_whole(std::string_view word) const {
  switch (impl_->row->whole_words) {
    case WholeWords::kNever:
      return false;
    case WholeWords::kAlways:
      return true;
    case WholeWords::kNewlineRuns:
      return word.find_first_not_of('\n') == std::string_view::npos;
  }
  return false;
}

bool PreTokenizer::adds_bos(std::optional<bool> file_says) const {
  switch (impl_->row->adds_bos) {
    case AddsBos::kIfFileSays:
      return file_says.value_or(false);
    case AddsBos::kUnlessFileForbids:
      return file_says.value_or(true);
    case AddsBos::kAlways:
      return true;
  }
  return false;
}

Spelling PreTokenizer::spelling() const { return impl_->row->spelling; }

std::string supported_pretokenizers() {
  std::string names;
  for (const PreTokenizerRow& row : pretokenizer_rows()) {
    names += (names.empty() ? "" : " ") + std::string(row.names);
  }
  return names;
}

}  // namespace godwit::tokenizer
