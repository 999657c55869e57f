#include "tokenizer/sentencepiece.h"

#include <algorithm>
#include <utility>

#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

std::string_view part(std::string_view text, int32_t begin, int32_t bytes) {
  return text.substr(static_cast<size_t>(begin), static_cast<size_t>(bytes));
}

}  // namespace

PieceTable::PieceTable(TokenIds words, std::vector<float> scores, const ByteTokens& byte_tokens,
                       TokenId unknown)
    : words_(std::move(words)),
      scores_(std::move(scores)),
      byte_tokens_(byte_tokens),
      unknown_(unknown) {
  for (const auto& [text, id] : words_) longest_ = std::max(longest_, text.size());
}

TokenId PieceTable::find(std::string_view text) const {
  if (text.size() > longest_) return kNoToken;
  const auto word = words_.find(text);
  return word == words_.end() ? kNoToken : TokenId{word->second};
}

void PieceTable::spell_out(std::string_view character, std::vector<TokenId>& out) const {
  const auto token = [this](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; };
  const bool has_bytes =
      std::all_of(character.begin(), character.end(), [&](char c) { return token(c).exists(); });
  if (has_bytes) {
    for (const char c : character) out.push_back(token(c));
  } else if (unknown_.exists()) {
    out.push_back(unknown_);
  }
}

std::span<const TokenId> PieceEncoder::encode(std::string_view text) {
  symbols_.clear();
  queue_.clear();
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = next_utf8(text.substr(at)).bytes;
    const auto i = static_cast<int32_t>(symbols_.size());
    symbols_.push_back({table_->find(text.substr(at, bytes)), static_cast<int32_t>(at),
                        static_cast<int32_t>(bytes), i - 1, i + 1});
    at += bytes;
  }
  if (!symbols_.empty()) symbols_.back().next = -1;
  for (int32_t i = 1; std::cmp_less(i, symbols_.size()); ++i) queue_pair(text, i - 1, i);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), is_worse);
    const Candidate best = queue_.back();
    queue_.pop_back();
    ++queue_pops_;
    join(text, best);
  }
  tokens_.clear();
  for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbol(i).next) {
    const Symbol& s = symbol(i);
    if (s.id.exists()) {
      tokens_.push_back(s.id);
    } else {
      table_->spell_out(part(text, s.begin, s.bytes), tokens_);
    }
  }
  return tokens_;
}

bool PieceEncoder::is_worse(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
}

void PieceEncoder::queue_pair(std::string_view text, int32_t left, int32_t right) {
  if (left < 0 || right < 0) return;
  const int32_t bytes = symbol(left).bytes + symbol(right).bytes;
  const TokenId result = table_->find(part(text, symbol(left).begin, bytes));
  if (!result.exists()) return;
  queue_.push_back({table_->score(result), left, right, bytes, result});
  std::push_heap(queue_.begin(), queue_.end(), is_worse);
}

void PieceEncoder::join(std::string_view text, const Candidate& candidate) {
  Symbol& left = symbol(candidate.left);
  Symbol& right = symbol(candidate.right);
  // Symbols grow or vanish, so a pair whose bytes still add up has not changed since it was queued.
  if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != candidate.bytes) return;
  left.bytes = candidate.bytes;
  left.id = candidate.result;
  left.next = right.next;
  right.bytes = 0;
  if (right.next >= 0) symbol(right.next).previous = candidate.left;
  queue_pair(text, left.previous, candidate.left);
  queue_pair(text, candidate.left, left.next);
}

}  // namespace godwit::tokenizer
