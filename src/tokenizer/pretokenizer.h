// Cuts text into the words inside which byte-level BPE may merge. Owns the compiled patterns of one
// pre-tokenizer (tokenizer.ggml.pre); immutable, so any number of threads may use one. Every byte
// of the text is in exactly one word. Time and stack are bounded whatever the text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "base/result.h"

namespace godwit::tokenizer {

class PreTokenizer {
 public:
  // `name` as in the file; empty is "default". Errors: an unsupported name.
  [[nodiscard]] static Result<PreTokenizer> make(std::string_view name);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // The words of `text` in order. Bytes that are no UTF-8 count as symbols, as U+FFFD would.
  [[nodiscard]] std::vector<TextRange> split(std::string_view text) const;

  // A word that the vocabulary holds is that token, whatever the merges say.
  [[nodiscard]] bool whole_words_first() const;
  // Whether a beginning-of-sequence token is added where the file does not say.
  [[nodiscard]] bool adds_bos() const;

 private:
  struct Impl;
  explicit PreTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Every name make() accepts, comma separated, for messages.
[[nodiscard]] std::string supported_pretokenizers();

}  // namespace godwit::tokenizer
