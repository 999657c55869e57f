// How much of a draft is worth verifying. A call of several rows costs more than a call of one, by
// an amount that model and machine decide, and gains only where the draft is right. Both are
// measured as generation goes: seconds per call by number of rows, and how often drafts prove right
// by the length of the match that they rest on. Drafts that are not verified are judged as well,
// once the tokens are known, so that what pays again is noticed.
// Decides speed alone, never a token.
#pragma once

#include <array>
#include <cstddef>

#include "engine/draft_lookup.h"

namespace godwit::engine {

class DraftPolicy {
 public:
  // Rows that calls are tried with: one certain token and the rest drafted.
  static constexpr std::array<size_t, 10> kRowCounts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
  static constexpr size_t kMaxDraft = kRowCounts.back() - 1;

  // Drafted tokens to verify, at most `n_drafted`: as many as promise the most tokens per second,
  // what drafting them costs counted in;
  // none where that is not more than one at a time gives.
  [[nodiscard]] size_t n_worth(size_t match_length, size_t n_drafted) const;

  // The `nth` (from 0) token of a draft proved right or wrong, all before it right.
  enum class Outcome : bool { kWrong, kRight };
  void learn_outcome(size_t match_length, size_t nth, Outcome outcome);
  // One call of `n_rows` rows took this long.
  void learn_cost(size_t n_rows, double seconds);
  // Drafting `n_tokens` took this long; where it costs nothing, nobody need say so.
  void learn_draft_cost(size_t n_tokens, double seconds);

 private:
  struct Cost {
    double seconds = 0;  // moving average
    size_t measured_at = 0;
  };
  // Chances that a draft's first token is right, and each later one once those before it are.
  struct Chances {
    double first = 0.4;
    double later = 0.7;
  };

  [[nodiscard]] bool is_known(const Cost& cost) const;

  std::array<Cost, kRowCounts.size()> costs_;  // by the index in kRowCounts
  std::array<Chances, DraftLookup::kMaxMatch + 1> chances_;
  double draft_seconds_ = 0;  // per token, moving average
  size_t n_calls_ = 0;
};

}  // namespace godwit::engine
