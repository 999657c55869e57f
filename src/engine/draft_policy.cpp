#include "engine/draft_policy.h"

#include <algorithm>

namespace godwit::engine {
namespace {

// Weights of the newest sample in the moving averages.
constexpr double kCostWeight = 0.2;
constexpr double kChanceWeight = 0.06;
// A row more costs at least this share of a call, as long as nothing is measured: little, so that
// a promising draft finds out.
constexpr double kHopedRowCost = 0.1;
// A gain below this is lost in the noise of what it was computed from.
constexpr double kLeastGain = 1.05;
// Calls after which a measurement no longer counts: it may have been a hiccup of the machine.
constexpr size_t kCostLifetime = 400;

}  // namespace

bool DraftPolicy::is_known(const Cost& cost) const {
  return cost.seconds > 0 && n_calls_ - cost.measured_at < kCostLifetime;
}

size_t DraftPolicy::n_worth(size_t match_length, size_t n_drafted) const {
  const Cost& one = costs_.front();
  if (one.seconds <= 0) return 0;  // nothing to compare with yet
  const Chances& chances = chances_[std::min(match_length, chances_.size() - 1)];
  size_t best = 0;
  double best_rate = kLeastGain / one.seconds;
  double known_seconds = one.seconds;
  size_t known_rows = 1;
  double expected = 1;  // tokens that a call yields
  double chance = chances.first;
  size_t counted = 1;
  for (size_t i = 1; i < kRowCounts.size() && kRowCounts[i] <= n_drafted + 1; ++i) {
    for (; counted < kRowCounts[i]; ++counted) {
      expected += chance;
      chance *= chances.later;
    }
    double seconds = costs_[i].seconds;
    if (is_known(costs_[i])) {
      known_seconds = seconds;
      known_rows = kRowCounts[i];
    } else {
      const auto more = static_cast<double>(kRowCounts[i] - known_rows);
      seconds = known_seconds + one.seconds * kHopedRowCost * more;
    }
    seconds += draft_seconds_ * static_cast<double>(kRowCounts[i] - 1);
    if (expected / seconds > best_rate) {
      best_rate = expected / seconds;
      best = kRowCounts[i] - 1;
    }
  }
  return best;
}

void DraftPolicy::learn_outcome(size_t match_length, size_t nth, Outcome outcome) {
  Chances& chances = chances_[std::min(match_length, chances_.size() - 1)];
  double& chance = nth == 0 ? chances.first : chances.later;
  chance += kChanceWeight * ((outcome == Outcome::kRight ? 1.0 : 0.0) - chance);
}

void DraftPolicy::learn_draft_cost(size_t n_tokens, double seconds) {
  if (n_tokens == 0) return;
  seconds /= static_cast<double>(n_tokens);
  if (draft_seconds_ > 0) seconds = std::min(seconds, 2 * draft_seconds_);
  draft_seconds_ =
      draft_seconds_ > 0 ? draft_seconds_ + kCostWeight * (seconds - draft_seconds_) : seconds;
}

void DraftPolicy::learn_cost(size_t n_rows, double seconds) {
  ++n_calls_;
  const auto* const row = std::ranges::find(kRowCounts, n_rows);
  if (row == kRowCounts.end()) return;
  Cost& cost = costs_[static_cast<size_t>(row - kRowCounts.begin())];
  // A call that the machine interrupted counts for no more than twice the usual.
  if (cost.seconds > 0) seconds = std::min(seconds, 2 * cost.seconds);
  cost.seconds = is_known(cost) ? cost.seconds + kCostWeight * (seconds - cost.seconds) : seconds;
  cost.measured_at = n_calls_;
}

}  // namespace godwit::engine
