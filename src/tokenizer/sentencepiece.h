// SentencePiece's merging of a whole text: starting from its characters, the adjacent pair whose
// joined text is the token of the best score becomes one (of equal scores the leftmost) until no
// pair is a token. Characters without a token become byte tokens. n characters cost at most 3n
// queue entries and as many lookups of at most the longest token's bytes: O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "tokenizer/spelling.h"

namespace godwit::tokenizer {

// What texts are tokens and how good they are. Immutable.
class PieceTable {
 public:
  // `words` (what plain text may become) holds views and is moved in; `scores` has one number for
  // each token of the vocabulary. `unknown` (or kNoToken) stands for a character that has neither
  // a token nor byte tokens.
  PieceTable(TokenIds words, std::vector<float> scores, const ByteTokens& byte_tokens,
             TokenId unknown);

  [[nodiscard]] TokenId find(std::string_view text) const;
  [[nodiscard]] float score(TokenId id) const { return scores_[static_cast<size_t>(id.value)]; }
  // Appends what stands for a character that is no token.
  void spell_out(std::string_view character, std::vector<TokenId>& out) const;

 private:
  TokenIds words_;
  std::vector<float> scores_;  // [n_tokens]
  ByteTokens byte_tokens_;
  TokenId unknown_;
  size_t longest_ = 0;  // bytes of the longest word
};

// The working memory of encoding; one for each thread, reused from text to text.
class PieceEncoder {
 public:
  explicit PieceEncoder(const PieceTable& table) : table_(&table) {}

  // Tokens of a text (below 2 GiB) whose spaces are escaped, valid until the next call.
  [[nodiscard]] std::span<const TokenId> encode(std::string_view text);

  // Entries taken from the queue since construction: the work done, for tests.
  [[nodiscard]] uint64_t queue_pops() const { return queue_pops_; }

 private:
  struct Symbol {
    TokenId id;        // kNoToken: a character without a token
    int32_t begin;     // byte of the text
    int32_t bytes;     // 0: its left neighbour has swallowed it
    int32_t previous;  // index, or -1
    int32_t next;      // index, or -1
  };
  // A pair that could be joined, as it was when it was queued.
  struct Candidate {
    float score;
    int32_t left;
    int32_t right;
    int32_t bytes;  // of both
    TokenId result;
  };

  // Order of the heap: best score on top, of equal scores the leftmost.
  [[nodiscard]] static bool is_worse(const Candidate& a, const Candidate& b);
  void queue_pair(std::string_view text, int32_t left, int32_t right);
  void join(std::string_view text, const Candidate& candidate);
  [[nodiscard]] Symbol& symbol(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  const PieceTable* table_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap, best on top
  std::vector<TokenId> tokens_;
  uint64_t queue_pops_ = 0;
};

}  // namespace godwit::tokenizer
