#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/candidates.h"
#include "sampling/sampler.h"

namespace godwit::sampling {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

float usable(float logit) { return std::isnan(logit) ? kImpossible : logit; }

// The largest logit, NaN apart. Independent lanes, which the compiler turns into vector maxima.
float max_logit(std::span<const float> logits) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(kImpossible);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      lanes[lane] = logit > lanes[lane] ? logit : lanes[lane];
    }
  }
  float max = *std::ranges::max_element(lanes);
  for (; i < logits.size(); ++i) max = logits[i] > max ? logits[i] : max;
  return max;
}

// log of the softmax' denominator over exp(max).
struct Normaliser {
  float max = 0.0f;
  double log_sum = 0.0;

  explicit Normaliser(std::span<const float> logits) : max(max_logit(logits)) {
    double sum = 0.0;
    for (const float logit : logits) sum += softmax_weight(usable(logit), max);
    log_sum = std::log(sum);
  }

  [[nodiscard]] float logprob(float logit) const {
    logit = usable(logit);
    const double above = logit == max ? 0.0 : static_cast<double>(logit) - static_cast<double>(max);
    return static_cast<float>(above - log_sum);
  }
};

}  // namespace

TokenId argmax(std::span<const float> logits) {
  check(!logits.empty(), "argmax of no logits");
  const float max = max_logit(logits);
  const auto found = std::ranges::find(logits, max);
  // Not found: all are NaN, and the lowest id stands for the equally impossible.
  return TokenId{found == logits.end() ? 0 : static_cast<int32_t>(found - logits.begin())};
}

float logprob(std::span<const float> logits, TokenId token) {
  if (token.value < 0 || static_cast<size_t>(token.value) >= logits.size()) return kImpossible;
  return Normaliser(logits).logprob(logits[static_cast<size_t>(token.value)]);
}

std::vector<TokenProbability> top_logprobs(std::span<const float> logits, size_t n_top) {
  if (logits.empty()) return {};
  const Normaliser normaliser(logits);
  Candidates candidates;
  candidates.fill(logits);
  candidates.keep_top(std::min(n_top, logits.size()));
  std::vector<TokenProbability> top;
  top.reserve(candidates.size());
  for (const Candidate& candidate : candidates.items()) {
    top.push_back({TokenId{candidate.id}, normaliser.logprob(candidate.logit)});
  }
  return top;
}

}  // namespace godwit::sampling
