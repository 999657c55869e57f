#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <queue>

namespace godwit::tokenizer {
namespace {

bool touches_any(const TextRange& range, std::span<const TextRange> user_ranges) {
  // The first user range that ends after ours begins is the only one that can be near enough.
  const auto first =
      std::upper_bound(user_ranges.begin(), user_ranges.end(), range.begin,
                       [](size_t begin, const TextRange& user) { return begin < user.end; });
  return first != user_ranges.end() && first->begin < range.end;
}

// What isspace() says in the C locale, whatever the program's.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

SpecialTokens::SpecialTokens(std::span<const SpecialToken> tokens) {
  nodes_.emplace_back();
  for (const SpecialToken& token : tokens) insert(token);
}

int32_t SpecialTokens::child(int32_t parent, char byte) const {
  int32_t at = node(parent).first_child;
  while (at >= 0 && node(at).byte != byte) at = node(at).next_sibling;
  return at;
}

void SpecialTokens::insert(const SpecialToken& token) {
  int32_t at = 0;
  for (const char byte : token.text) {
    int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      Node& parent = nodes_[static_cast<size_t>(at)];
      const Node made{.next_sibling = parent.first_child, .parent = at, .token = -1, .byte = byte};
      parent.first_child = next;
      nodes_.push_back(made);
    }
    at = next;
  }
  Node& end = nodes_[static_cast<size_t>(at)];
  if (end.token >= 0) return;
  end.token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back({token.id, token.text.size(), token.recognised, token.strips});
}

int32_t SpecialTokens::deepest(std::string_view text) const {
  int32_t at = 0;
  for (const char byte : text) {
    const int32_t next = child(at, byte);
    if (next < 0) break;
    at = next;
  }
  return at;
}

int32_t SpecialTokens::longest_allowed(const Match& match, Specials specials,
                                       std::span<const TextRange> user_ranges) const {
  for (int32_t at = match.node; at > 0; at = node(at).parent) {
    if (node(at).token < 0) continue;
    const Recognised recognised = token_at(at).recognised;
    if (recognised == Recognised::kWhenParsing && specials == Specials::kText) continue;
    if (recognised == Recognised::kEverywhere) return at;
    if (!touches_any(range({match.begin, at}), user_ranges)) return at;
  }
  return -1;
}

TextRange SpecialTokens::with_stripped(const Match& match, std::string_view text,
                                       const std::vector<bool>& is_taken) const {
  TextRange all = range(match);
  const auto is_free_space = [&](size_t at) { return !is_taken[at] && is_space(text[at]); };
  switch (token_at(match.node).strips) {
    case Strips::kNothing:
      break;
    case Strips::kBefore:
      while (all.begin > 0 && is_free_space(all.begin - 1)) --all.begin;
      break;
    case Strips::kAfter:
      while (all.end < text.size() && is_free_space(all.end)) ++all.end;
      break;
  }
  return all;
}

std::vector<SpecialTokens::Taken> SpecialTokens::choose(
    std::string_view text, Specials specials, std::span<const TextRange> user_ranges) const {
  const auto has_less_claim = [this](const Match& a, const Match& b) {
    const size_t a_bytes = token_at(a.node).bytes;
    const size_t b_bytes = token_at(b.node).bytes;
    if (a_bytes != b_bytes) return a_bytes < b_bytes;
    if (a.node != b.node) return node(a.node).token > node(b.node).token;
    return a.begin > b.begin;
  };
  // One match for each place, the longest that may stand there; a shorter one follows only when
  // the longer turns out to be blocked. So the queue never holds more entries than the text bytes.
  std::vector<Match> matches;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const Match deepest_here{begin, deepest(text.substr(begin))};
    const int32_t at = longest_allowed(deepest_here, specials, user_ranges);
    if (at > 0) matches.push_back({begin, at});
  }
  if (matches.empty()) return {};
  std::priority_queue queue(has_less_claim, std::move(matches));
  std::vector<Taken> taken;
  std::vector<bool> is_taken(text.size());
  while (!queue.empty()) {
    const Match match = queue.top();
    queue.pop();
    const TextRange place = range(match);
    // Whatever was taken so far is no shorter, so it cannot lie strictly inside this place.
    if (is_taken[place.begin]) continue;
    if (is_taken[place.end - 1]) {
      const Match above{match.begin, node(match.node).parent};
      const int32_t at = longest_allowed(above, specials, user_ranges);
      if (at > 0) queue.push({match.begin, at});
      continue;
    }
    const TextRange all = with_stripped(match, text, is_taken);
    std::fill(is_taken.begin() + static_cast<std::ptrdiff_t>(all.begin),
              is_taken.begin() + static_cast<std::ptrdiff_t>(all.end), true);
    taken.push_back({match.node, place, all});
  }
  std::sort(taken.begin(), taken.end(),
            [](const Taken& a, const Taken& b) { return a.place.begin < b.place.begin; });
  return taken;
}

std::vector<Fragment> SpecialTokens::partition(std::string_view text, Specials specials,
                                               std::span<const TextRange> user_ranges) const {
  std::vector<Fragment> fragments;
  size_t done = 0;
  for (const Taken& token : choose(text, specials, user_ranges)) {
    const TextRange& all = token.stripped;
    if (all.begin > done) fragments.push_back({{done, all.begin}, kNoToken});
    fragments.push_back({token.place, token_at(token.node).id});
    done = all.end;
  }
  if (done < text.size()) fragments.push_back({{done, text.size()}, kNoToken});
  return fragments;
}

}  // namespace godwit::tokenizer
