#include "tokenizer/bpe.h"

#include <algorithm>

#include "tokenizer/byte_level.h"

namespace godwit::tokenizer {
namespace {

constexpr SymbolId kJoined = -1;  // a symbol that its left neighbour has swallowed

uint64_t pair_key(SymbolId left, SymbolId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Gives ids to spellings: the vocabulary's where it has one, new ones from there on.
class Symbols {
 public:
  Symbols(const MergeTable::Ids& ids, int32_t first_new) : ids_(&ids), next_(first_new) {}

  SymbolId id(std::string_view spelling) {
    const auto token = ids_->find(spelling);
    if (token != ids_->end()) return token->second;
    const auto [own, is_new] = own_.try_emplace(std::string(spelling), next_);
    if (is_new) ++next_;
    return own->second;
  }

 private:
  const MergeTable::Ids* ids_;
  std::unordered_map<std::string, SymbolId> own_;
  SymbolId next_;
};

}  // namespace

MergeTable::MergeTable(const Ids& ids, int32_t n_tokens, std::span<const std::string> merges)
    : n_tokens_(n_tokens) {
  Symbols symbols(ids, n_tokens);
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    bytes_[byte] = symbols.id(to_byte_level({&c, 1}));
  }
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    // The left half may itself be a space in vocabularies that are not byte-level: skip one.
    const size_t gap = merge.find(' ', 1);
    if (gap == std::string_view::npos || gap + 1 == merge.size()) continue;
    const std::string_view left = merge.substr(0, gap);
    const std::string_view right = merge.substr(gap + 1);
    const SymbolId result = symbols.id(std::string(left) + std::string(right));
    // Of two equal merges the first, which is the better, stays.
    merges_.try_emplace(pair_key(symbols.id(left), symbols.id(right)),
                        Merge{static_cast<int32_t>(rank), result});
  }
}

const MergeTable::Merge* MergeTable::find(SymbolId left, SymbolId right) const {
  const auto merge = merges_.find(pair_key(left, right));
  return merge == merges_.end() ? nullptr : &merge->second;
}

std::span<const TokenId> BpeEncoder::encode(std::string_view word) {
  symbols_.clear();
  queue_.clear();
  const auto n = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<uint8_t>(word[static_cast<size_t>(i)]);
    symbols_.push_back({table_->of_byte(byte), i, i - 1, i + 1 < n ? i + 1 : -1});
  }
  for (int32_t i = 1; i < n; ++i) queue_pair(i - 1, i);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), is_worse);
    const Candidate best = queue_.back();
    queue_.pop_back();
    ++queue_pops_;
    join(best);
  }
  emit(word);
  return tokens_;
}

bool BpeEncoder::is_worse(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

void BpeEncoder::queue_pair(int32_t left, int32_t right) {
  if (left < 0 || right < 0) return;
  const SymbolId left_id = symbol(left).id;
  const SymbolId right_id = symbol(right).id;
  const MergeTable::Merge* merge = table_->find(left_id, right_id);
  if (merge == nullptr) return;
  queue_.push_back({merge->rank, left, right, left_id, right_id, merge->result});
  std::push_heap(queue_.begin(), queue_.end(), is_worse);
}

void BpeEncoder::join(const Candidate& candidate) {
  Symbol& left = symbol(candidate.left);
  const Symbol right = symbol(candidate.right);
  // Symbols only grow, so one that still has its id has not changed since it was queued.
  if (left.id != candidate.left_id || right.id != candidate.right_id) return;
  left.id = candidate.result;
  left.next = right.next;
  symbol(candidate.right).id = kJoined;
  if (right.next >= 0) symbol(right.next).previous = candidate.left;
  queue_pair(left.previous, candidate.left);
  queue_pair(candidate.left, left.next);
}

void BpeEncoder::emit(std::string_view word) {
  tokens_.clear();
  for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbol(i).next) {
    if (table_->is_token(symbol(i).id)) {
      tokens_.push_back({symbol(i).id});
      continue;
    }
    // A symbol that only the merges know: its bytes, those that are tokens.
    const auto begin = static_cast<size_t>(symbol(i).begin);
    const int32_t next = symbol(i).next;
    const size_t end = next >= 0 ? static_cast<size_t>(symbol(next).begin) : word.size();
    for (const char c : word.substr(begin, end - begin)) {
      const SymbolId byte = table_->of_byte(static_cast<uint8_t>(c));
      if (table_->is_token(byte)) tokens_.push_back({byte});
    }
  }
}

}  // namespace godwit::tokenizer
