#include <algorithm>
#include <cmath>

#include "sampling/steps.h"

namespace godwit::sampling {
namespace {

void divide_by(Candidates& candidates, float temperature) {
  // So cold that the quotient overflows is as good as greedy.
  const float best = candidates.max_logit();
  const bool overflows = std::isfinite(best) && !std::isfinite(best / temperature);
  if (temperature > 0.0f && !overflows) {
    candidates.change_all([&](Candidate& candidate) { candidate.logit /= temperature; });
    return;
  }
  const std::span<const Candidate> items = candidates.items();
  const auto likeliest = std::ranges::min_element(items, ranks_before);
  candidates.keep_only(static_cast<size_t>(likeliest - items.begin()));
}

// Entropy of the distribution, as a share of the most that so many candidates can have.
double relative_entropy(Candidates& candidates) {
  const Candidates::Weights weights = candidates.weights();
  double entropy = 0.0;
  for (const float weight : weights.values) {
    const double p = static_cast<double>(weight) / weights.sum;
    if (p > 0.0) entropy -= p * std::log(p);
  }
  return std::clamp(entropy / std::log(static_cast<double>(candidates.size())), 0.0, 1.0);
}

}  // namespace

// Divides the logits by the temperature. With a range, the temperature lies between temperature -
// range and temperature + range, the higher the less certain the model is (dynamic temperature).
void apply_temperature(Candidates& candidates, const StepInput& in) {
  const SamplerSettings& s = in.settings;
  if (s.dynatemp_range <= 0.0f) {
    if (s.temperature != 1.0f) divide_by(candidates, s.temperature);
    return;
  }
  if (candidates.size() <= 1) return;
  const float coldest = std::max(0.0f, s.temperature - s.dynatemp_range);
  const float hottest = s.temperature + s.dynatemp_range;
  const double share =
      std::pow(relative_entropy(candidates), static_cast<double>(s.dynatemp_exponent));
  divide_by(candidates, coldest + (hottest - coldest) * static_cast<float>(share));
}

}  // namespace godwit::sampling
