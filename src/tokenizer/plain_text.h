// Plain text, in which no special token is looked for, to token ids: byte-pair merging inside the
// words of a pre-tokenizer, or SentencePiece's merging of the whole text. Owns what either needs;
// immutable, so any number of threads may use one, each with an encoder of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/spelling.h"
#include "tokenizer/token_roles.h"
#include "tokenizer/vocab.h"

namespace godwit::tokenizer {

// What plain text may become, by its spelling: never a special token, whatever merges spell. Left
// in are user-defined tokens that are one character of the byte-level alphabet (a byte may have no
// other token) and, where spaces are escaped, those that are white space (which can forge nothing).
[[nodiscard]] TokenIds plain_words(TokenIds ids, const TokenRoles& roles, Spelling spelling);

struct BytePairText {
  PreTokenizer pretokenizer;
  TokenIds words;
  MergeTable merges;
};

struct PieceText {
  PieceTable pieces;
};

class PlainText {
 public:
  // `vocab` is of a kind that check_model() accepts; `ids` are all its tokens by text. Errors: an
  // unsupported pre-tokenizer, by name; scores that are missing or no numbers.
  [[nodiscard]] static Result<PlainText> make(const Vocab& vocab, const TokenIds& ids,
                                              const TokenRoles& roles);

  [[nodiscard]] Spelling spelling() const { return spelling_; }
  // Whether these are added where an encoded text asks for what the model says.
  [[nodiscard]] bool adds_bos() const { return adds_bos_; }
  [[nodiscard]] bool adds_eos() const { return adds_eos_; }
  // Whether each stretch of plain text begins with a space that is not in it.
  [[nodiscard]] bool adds_space() const { return adds_space_; }

 private:
  friend class PlainTextEncoder;
  explicit PlainText(std::variant<BytePairText, PieceText> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] static Result<PlainText> make_byte_pairs(const Vocab& vocab, const TokenIds& ids,
                                                         const TokenRoles& roles);
  [[nodiscard]] static Result<PlainText> make_pieces(const Vocab& vocab, const TokenIds& ids,
                                                     const TokenRoles& roles);

  std::variant<BytePairText, PieceText> parts_;
  Spelling spelling_ = Spelling::kByteLevel;
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  bool adds_space_ = false;
};

// The working memory of encoding; one for each thread.
class PlainTextEncoder {
 public:
  explicit PlainTextEncoder(const PlainText& plain);

  // Appends the tokens of one stretch of plain text.
  void encode(std::string_view text, std::vector<TokenId>& out);

 private:
  void encode_words(const BytePairText& parts, std::string_view text, std::vector<TokenId>& out);

  const PlainText* plain_;
  std::optional<BpeEncoder> bpe_;
  std::optional<PieceEncoder> pieces_;
};

}  // namespace godwit::tokenizer
