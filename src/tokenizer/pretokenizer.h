// Cuts text into the words inside which byte-pair merging may happen. Owns the compiled patterns of
// one pre-tokenizer (tokenizer.ggml.pre); immutable, so any number of threads may use one. Every
// byte of the text is in exactly one word. Time and stack are bounded whatever the text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "base/result.h"
#include "tokenizer/spelling.h"

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

  // Whether this word, where the vocabulary holds it, is that token whatever the merges say.
  [[nodiscard]] bool looks_up_whole(std::string_view word) const;
  // Whether a beginning-of-sequence token is added, `file_says` being tokenizer.ggml.add_bos_token.
  [[nodiscard]] bool adds_bos(std::optional<bool> file_says) const;
  // How vocabularies of this pre-tokenizer write text; where spaces are escaped, split() takes
  // escaped text.
  [[nodiscard]] Spelling spelling() const;

 private:
  struct Impl;
  explicit PreTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Every name make() accepts, for messages.
[[nodiscard]] std::string supported_pretokenizers();

}  // namespace godwit::tokenizer
