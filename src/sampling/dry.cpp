#include "sampling/dry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "sampling/steps.h"

namespace godwit::sampling {
namespace {

// As llama.cpp limits them, so that the search stays linear in the history.
constexpr size_t kMaxBreakerBytes = 40;
constexpr size_t kMaxTailTokens = 20;

// Lengths of the ends of `word` that are the beginning of `text` but not all of it.
std::vector<size_t> overlaps(std::string_view word, std::string_view text) {
  std::vector<size_t> found;
  for (size_t length = std::min(word.size(), text.size() - 1); length > 0; --length) {
    if (word.substr(word.size() - length) == text.substr(0, length)) found.push_back(length);
  }
  return found;
}

// The history seen backwards: at(0) is the newest token.
class Backwards {
 public:
  explicit Backwards(std::span<const TokenId> history) : history_(history) {}
  [[nodiscard]] size_t size() const { return history_.size(); }
  [[nodiscard]] TokenId at(size_t i) const { return history_[history_.size() - 1 - i]; }

 private:
  std::span<const TokenId> history_;
};

// lengths[k]: how many of the newest tokens are also the newest as seen from k tokens ago. The
// Z-function (Gusfield, Algorithms on Strings, 1.4) of the reversed history, linear in its length.
std::vector<size_t> repeat_lengths(const Backwards& tokens) {
  const size_t n = tokens.size();
  std::vector<size_t> lengths(n, 0);
  size_t box_begin = 0;  // [box_begin, box_end): the match that reaches furthest back so far
  size_t box_end = 0;
  for (size_t k = 1; k < n; ++k) {
    size_t length = k < box_end ? std::min(box_end - k, lengths[k - box_begin]) : 0;
    while (k + length < n && tokens.at(length) == tokens.at(k + length)) ++length;
    if (k + length > box_end) {
      box_begin = k;
      box_end = k + length;
    }
    lengths[k] = length;
  }
  return lengths;
}

// multiplier * base^exponent, kept finite.
float growing_penalty(const SamplerSettings& s, int32_t exponent) {
  constexpr double kMax = static_cast<double>(std::numeric_limits<float>::max());
  const double penalty = static_cast<double>(s.dry_multiplier) *
                         std::pow(static_cast<double>(s.dry_base), static_cast<double>(exponent));
  return static_cast<float>(std::clamp(penalty, -kMax, kMax));
}

}  // namespace

SequenceBreakers::SequenceBreakers(std::span<const std::string> texts,
                                   const TokenTexts& vocabulary) {
  for (const std::string& whole : texts) {
    const std::string text = whole.substr(0, kMaxBreakerBytes);
    if (text.empty()) continue;
    std::vector<Tail> tails(text.size());  // by length of the overlap, made when first needed
    for (int32_t id = 0; id < vocabulary.size; ++id) {
      const std::string_view word = vocabulary.bytes(TokenId{id});
      if (word.find(text) != std::string_view::npos) {
        add(TokenId{id}, {});
        continue;
      }
      for (const size_t length : overlaps(word, text)) {
        Tail& tail = tails[length];
        if (tail.empty()) {
          tail = vocabulary.encode(std::string_view(text).substr(length));
          if (tail.size() > kMaxTailTokens) tail.resize(kMaxTailTokens);
        }
        add(TokenId{id}, tail);
      }
    }
  }
}

void SequenceBreakers::add(TokenId head, Tail tail) {
  std::vector<Tail>& known = tails_[head.value];
  if (std::ranges::find(known, tail) == known.end()) known.push_back(std::move(tail));
}

bool SequenceBreakers::is_breaker(TokenId head) const {
  const auto found = tails_.find(head.value);
  return found != tails_.end() &&
         std::ranges::any_of(found->second, [](const Tail& tail) { return tail.empty(); });
}

size_t SequenceBreakers::tokens_since(std::span<const TokenId> history) const {
  const Backwards tokens(history);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto found = tails_.find(tokens.at(i).value);
    if (found == tails_.end()) continue;
    bool matched = false;
    size_t longest = 0;
    for (const Tail& tail : found->second) {
      if (tail.size() > i) continue;
      bool same = true;
      for (size_t t = 0; t < tail.size(); ++t) same = same && tail[t] == tokens.at(i - 1 - t);
      if (!same) continue;
      matched = true;
      longest = std::max(longest, tail.size());
    }
    if (matched) return i - longest;
  }
  return tokens.size();
}

// A token that would continue a repetition of n >= allowed_length tokens loses
// multiplier * base^(n - allowed_length).
void apply_dry(Candidates& candidates, const StepInput& in) {
  const SamplerSettings& s = in.settings;
  std::span<const TokenId> history = in.history;
  if (s.dry_penalty_last_n > 0) {
    history = history.last(std::min(history.size(), static_cast<size_t>(s.dry_penalty_last_n)));
  }
  const auto allowed = static_cast<size_t>(s.dry_allowed_length);
  if (history.size() <= allowed) return;
  const size_t limit = in.breakers.tokens_since(history);
  if (limit < allowed) return;

  const Backwards tokens(history);
  const std::vector<size_t> lengths = repeat_lengths(tokens);
  for (size_t k = 1; k < tokens.size(); ++k) {
    const size_t length = std::min(lengths[k], limit);
    const TokenId next = tokens.at(k - 1);  // what followed the repetition then
    if (length < allowed || in.breakers.is_breaker(next)) continue;
    int32_t& longest = in.notes.at(next.value);
    longest = std::max(longest, static_cast<int32_t>(length));
  }
  candidates.change(in.notes.ids, in.notes.marked, [&](Candidate& candidate) {
    candidate.logit -= growing_penalty(s, in.notes.at(candidate.id) - s.dry_allowed_length);
  });
  in.notes.clear();
}

}  // namespace godwit::sampling
