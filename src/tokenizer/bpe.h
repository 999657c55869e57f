// Byte-pair merging of one word: starting from its bytes, the adjacent pair with the best rank is
// joined (of equal ranks the leftmost) until no pair has one. Owns the merge table; immutable.
// n bytes cost at most 3n queue entries, so O(n log n) whatever the word.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/types.h"

namespace godwit::tokenizer {

// A byte, a token, or a step between the two that only the merges know. Ids below the vocabulary's
// size are tokens.
using SymbolId = int32_t;

class MergeTable {
 public:
  // Ids of byte-level spellings; the views stay valid while the table is built.
  using Ids = std::unordered_map<std::string_view, int32_t>;

  // `merges` as in the file, best first. A merge whose text is no token gets a symbol of its own,
  // since a later merge may need it; entries without two halves are ignored, as llama.cpp does.
  MergeTable(const Ids& ids, int32_t n_tokens, std::span<const std::string> merges);

  struct Merge {
    int32_t rank;
    SymbolId result;
  };
  // The merge of this pair, or nullptr.
  [[nodiscard]] const Merge* find(SymbolId left, SymbolId right) const;

  [[nodiscard]] SymbolId of_byte(uint8_t byte) const { return bytes_[byte]; }
  [[nodiscard]] bool is_token(SymbolId symbol) const { return symbol < n_tokens_; }

 private:
  std::unordered_map<uint64_t, Merge> merges_;
  std::array<SymbolId, 256> bytes_{};
  int32_t n_tokens_;
};

// The working memory of encoding; one for each thread, reused from word to word.
class BpeEncoder {
 public:
  explicit BpeEncoder(const MergeTable& table) : table_(&table) {}

  // Tokens of one word of raw bytes (below 2 GiB), valid until the next call. A byte that the
  // vocabulary lacks has no token and is left out, as in llama.cpp.
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
  [[nodiscard]] Symbol& symbol(int32_t index) { return symbols_[static_cast<size_t>(index)]; }

  const MergeTable* table_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap, best on top
  std::vector<TokenId> tokens_;
  uint64_t queue_pops_ = 0;
};

}  // namespace godwit::tokenizer
