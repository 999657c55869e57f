#include "tokenizer/bpe.h"

#include <algorithm>
#include <utility>

#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

constexpr SymbolId kJoined = -1;  // a symbol that its left neighbour has swallowed

uint64_t pair_key(SymbolId left, SymbolId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Gives ids to spellings: the vocabulary's where it has one, new ones from there on.
class Symbols {
 public:
  Symbols(const TokenIds& ids, int32_t first_new) : ids_(&ids), next_(first_new) {}

  SymbolId id(std::string_view spelling) {
    const auto token = ids_->find(spelling);
    if (token != ids_->end()) return token->second;
    const auto [own, is_new] = own_.try_emplace(std::string(spelling), next_);
    if (is_new) ++next_;
    return own->second;
  }

 private:
  const TokenIds* ids_;
  std::unordered_map<std::string, SymbolId> own_;
  SymbolId next_;
};

bool is_one_character(std::string_view spelling) {
  return !spelling.empty() && next_utf8(spelling).bytes == spelling.size();
}

}  // namespace

MergeTable::MergeTable(const Source& source)
    : n_tokens_(source.n_tokens), spelling_(source.spelling) {
  Symbols symbols(source.words, n_tokens_);
  const bool is_byte_level = spelling_ == Spelling::kByteLevel;
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    const TokenId token = source.byte_tokens[byte];
    bytes_[byte] = is_byte_level    ? symbols.id(to_byte_level({&c, 1}))
                   : token.exists() ? token.value
                                    : kUnspelled;
  }
  const auto note_character = [&](std::string_view spelling, SymbolId id) {
    if (!is_byte_level && is_one_character(spelling))
      characters_.try_emplace(std::string(spelling), id);
  };
  for (const auto& [text, id] : source.words) note_character(text, id);
  merges_.reserve(source.merges.size());
  for (size_t rank = 0; rank < source.merges.size(); ++rank) {
    const std::string_view merge = source.merges[rank];
    // The left half may itself be a space in vocabularies that are not byte-level: skip one.
    const size_t gap = merge.find(' ', 1);
    if (gap == std::string_view::npos || gap + 1 == merge.size()) continue;
    const std::string_view left = merge.substr(0, gap);
    const std::string_view right = merge.substr(gap + 1);
    const SymbolId left_id = symbols.id(left);
    const SymbolId right_id = symbols.id(right);
    note_character(left, left_id);
    note_character(right, right_id);
    const SymbolId result = symbols.id(std::string(left) + std::string(right));
    // Of two equal merges the first, which is the better, stays.
    merges_.try_emplace(pair_key(left_id, right_id), Merge{static_cast<int32_t>(rank), result});
  }
}

MergeTable::Unit MergeTable::first_unit(std::string_view rest) const {
  if (spelling_ == Spelling::kByteLevel) return {of_byte(static_cast<uint8_t>(rest[0])), 1};
  const size_t bytes = next_utf8(rest).bytes;
  const auto character = characters_.find(std::string(rest.substr(0, bytes)));
  return {character == characters_.end() ? kUnspelled : character->second, bytes};
}

const MergeTable::Merge* MergeTable::find(SymbolId left, SymbolId right) const {
  const auto merge = merges_.find(pair_key(left, right));
  return merge == merges_.end() ? nullptr : &merge->second;
}

std::span<const TokenId> BpeEncoder::encode(std::string_view word) {
  symbols_.clear();
  queue_.clear();
  for (size_t at = 0; at < word.size();) {
    const MergeTable::Unit unit = table_->first_unit(word.substr(at));
    const auto i = static_cast<int32_t>(symbols_.size());
    symbols_.push_back({unit.id, static_cast<int32_t>(at), i - 1, i + 1});
    at += unit.bytes;
  }
  if (!symbols_.empty()) symbols_.back().next = -1;
  for (int32_t i = 1; std::cmp_less(i, symbols_.size()); ++i) queue_pair(i - 1, i);
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
    const auto begin = static_cast<size_t>(symbol(i).begin);
    const int32_t next = symbol(i).next;
    const size_t end = next >= 0 ? static_cast<size_t>(symbol(next).begin) : word.size();
    emit_units(word.substr(begin, end - begin));
  }
}

// What a symbol that is no token consists of: its units, and of those that are no tokens the bytes.
void BpeEncoder::emit_units(std::string_view text) {
  while (!text.empty()) {
    const MergeTable::Unit unit = table_->first_unit(text);
    if (table_->is_token(unit.id)) {
      tokens_.push_back({unit.id});
    } else {
      for (const char c : text.substr(0, unit.bytes)) {
        const SymbolId byte = table_->of_byte(static_cast<uint8_t>(c));
        if (table_->is_token(byte)) tokens_.push_back({byte});
      }
    }
    text.remove_prefix(unit.bytes);
  }
}

}  // namespace godwit::tokenizer
