// Text to token ids and back, as the model file says. Owns the vocabulary; immutable after load,
// so any number of threads may use one. Knows nothing of chats or models.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "base/result.h"
#include "base/types.h"
#include "gguf/file.h"

namespace godwit::tokenizer {

struct Vocab;

// GGUF's tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

enum class Specials {
  kParse,  // special-token text becomes special tokens
  kText,   // all of the text is plain text
};

// The beginning-of-sequence token, and where the model wants one the end-of-sequence token.
enum class AddBos { kAsModelSays, kNever };

class Tokenizer {
 public:
  // Errors: no or inconsistent vocabulary, an unsupported tokenizer model or pre-tokenizer (named).
  [[nodiscard]] static Result<Tokenizer> load(const gguf::File& file);
  [[nodiscard]] static Result<Tokenizer> from_vocab(Vocab vocab);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Ids of `text`, which may hold any bytes (invalid UTF-8 falls back to byte tokens).
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, Specials specials,
                                            AddBos add_bos) const;
  // Special tokens are recognised only outside the user ranges; merges cross their borders. Never
  // ends with an end-of-sequence token that is not in the text: more is to follow.
  [[nodiscard]] std::vector<TokenId> encode(const MarkedText& text, AddBos add_bos) const;

  // Raw bytes of one token; may end or begin inside a UTF-8 character. Control tokens give their
  // text, unused ones nothing; the view lives as long as the tokenizer. `id` is below size().
  [[nodiscard]] std::string_view bytes(TokenId id) const;
  [[nodiscard]] TokenKind kind(TokenId id) const;
  // Control tokens and the spaces that encode() put before stretches of text are left out.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;

  [[nodiscard]] int32_t size() const;
  [[nodiscard]] TokenId bos() const;
  [[nodiscard]] TokenId eos() const;
  [[nodiscard]] bool adds_bos() const;
  // Whether generation ends here: eos, eot, and the end-of-turn texts that llama.cpp knows.
  [[nodiscard]] bool ends_generation(TokenId id) const;
  [[nodiscard]] TokenId find(std::string_view text) const;  // exact vocabulary entry, or kNoToken

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::tokenizer
