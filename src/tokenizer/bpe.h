// Byte-pair merging of one word: starting from its bytes (or, where spaces are escaped, from its
// characters), the adjacent pair with the best rank is joined (of equal ranks the leftmost) until
// no pair has one. Owns the merge table; immutable. n symbols cost at most 3n queue entries, so
// O(n log n) whatever the word.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "tokenizer/spelling.h"

namespace godwit::tokenizer {

// A byte or character, a token, or a step between the two that only the merges know. Ids from 0 to
// the vocabulary's size are tokens.
using SymbolId = int32_t;

class MergeTable {
 public:
  struct Source {
    const TokenIds& words;  // what plain text may become
    int32_t n_tokens;
    std::span<const std::string> merges;  // as in the file, best first
    Spelling spelling;
    const ByteTokens& byte_tokens;  // used where spaces are escaped
  };
  // A merge whose text is no token gets a symbol of its own, since a later merge may need it;
  // entries without two halves are ignored, as llama.cpp does.
  explicit MergeTable(const Source& source);

  struct Merge {
    int32_t rank;
    SymbolId result;
  };
  // The merge of this pair, or nullptr.
  [[nodiscard]] const Merge* find(SymbolId left, SymbolId right) const;

  // What words are made of before anything is merged: the first of them in `rest` (not empty).
  struct Unit {
    SymbolId id;  // kUnspelled for a character that neither tokens nor merges know
    size_t bytes;
  };
  [[nodiscard]] Unit first_unit(std::string_view rest) const;

  [[nodiscard]] SymbolId of_byte(uint8_t byte) const { return bytes_[byte]; }
  [[nodiscard]] bool is_token(SymbolId symbol) const { return symbol >= 0 && symbol < n_tokens_; }

 private:
  static constexpr SymbolId kUnspelled = -2;

  std::unordered_map<uint64_t, Merge> merges_;
  // Byte-level: the symbol of each byte. Otherwise: its byte token, or kUnspelled.
  std::array<SymbolId, 256> bytes_{};
  std::unordered_map<std::string, SymbolId> characters_;  // empty where words are byte-level
  int32_t n_tokens_;
  Spelling spelling_;
};

// The working memory of encoding; one for each thread, reused from word to word.
class BpeEncoder {
 public:
  explicit BpeEncoder(const MergeTable& table) : table_(&table) {}

  // Tokens of one word (below 2 GiB; raw bytes, or with its spaces escaped), valid until the next
  // call. A byte that the vocabulary lacks has no token and is left out, as in llama.cpp.
  [[nodiscard]] std::span<const TokenId> encode(std::string_view word);

  // Entries taken from the queue since construction: the work done, for tests.
  [[nodiscard]] uint64_t queue_pops() const { return queue_pops_; }

 private:
  struct Symbol {
    SymbolId id;
    int32_t begin;     // byte of the word
    int32_t previous;  // index, or -1
    int32_t next;      // index, or -1
  };
  // A pair that could be joined, as it was when it was queued.
  struct Candidate {
    int32_t rank;
    int32_t left;
    int32_t right;
    SymbolId left_id;
    SymbolId right_id;
    SymbolId result;
  };

  // Order of the heap: best rank on top, of equal ranks the leftmost.
  [[nodiscard]] static bool is_worse(const Candidate& a, const Candidate& b);
  void queue_pair(int32_t left, int32_t right);
  void join(const Candidate& candidate);
  void emit(std::string_view word);
  void emit_units(std::string_view text);
  [[nodiscard]] Symbol& symbol(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  const MergeTable* table_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap, best on top
  std::vector<TokenId> tokens_;
  uint64_t queue_pops_ = 0;
};

}  // namespace godwit::tokenizer
