#include "sampling/candidates.h"

#include <cmath>
#include <limits>

namespace godwit::sampling {

void Candidates::fill(std::span<const float> logits) {
  items_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = std::isnan(logits[i]) ? -std::numeric_limits<float>::infinity() : logits[i];
    items_[i] = {.id = static_cast<int32_t>(i), .logit = logit};
  }
  sorted_ = 0;
  by_id_ = true;
}

float Candidates::max_logit() const {
  if (sorted_ > 0) return items_.front().logit;
  float max = -std::numeric_limits<float>::infinity();
  for (const Candidate& item : items_) max = std::max(max, item.logit);
  return max;
}

void Candidates::sort_top(size_t n) {
  if (n <= sorted_) return;
  extend_sorted(std::span(items_), sorted_, n, ranks_before);
  by_id_ = false;
}

void Candidates::keep_top(size_t n) {
  sort_top(n);
  if (n < items_.size()) items_.resize(n);
  sorted_ = std::min(sorted_, items_.size());
}

void Candidates::drop_top(size_t n) {
  items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(n));
  sorted_ -= n;
  by_id_ = false;
}

void Candidates::keep_at_least(float logit) {
  size_t kept = 0;
  size_t kept_sorted = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].logit < logit) continue;
    items_[kept++] = items_[i];
    if (i < sorted_) kept_sorted = kept;
  }
  if (kept < items_.size()) by_id_ = false;
  items_.resize(kept);
  sorted_ = kept_sorted;
}

void Candidates::replace(std::span<const Candidate> kept) {
  items_.assign(kept.begin(), kept.end());
  sorted_ = 0;
  by_id_ = false;
}

void Candidates::keep_only(size_t i) {
  items_.front() = items_[i];
  items_.resize(1);
  sorted_ = 1;
  by_id_ = false;
}

Candidates::Weights Candidates::weights() {
  const float max = max_logit();
  weights_.resize(items_.size());
  double sum = 0.0;
  for (size_t i = 0; i < items_.size(); ++i) {
    const double weight = softmax_weight(items_[i].logit, max);
    weights_[i] = static_cast<float>(weight);
    sum += weight;
  }
  return {.values = weights_, .sum = sum};
}

}  // namespace godwit::sampling
