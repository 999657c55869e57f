#include <cmath>
#include <limits>

#include "sampling/steps.h"

namespace godwit::sampling {

// Makes impossible what lies more than n standard deviations of the logits below the best (Tang
// et al. 2024). Impossible tokens stay in the list and are left out of the statistics.
void apply_top_n_sigma(Candidates& candidates, const StepInput& in) {
  const float n = in.settings.top_n_sigma;
  if (candidates.size() <= 1) return;
  double sum = 0.0;
  size_t count = 0;
  for (const Candidate& candidate : candidates.items()) {
    if (!std::isfinite(candidate.logit)) continue;
    sum += static_cast<double>(candidate.logit);
    ++count;
  }
  if (count == 0) return;
  const double mean = sum / static_cast<double>(count);
  double squares = 0.0;
  for (const Candidate& candidate : candidates.items()) {
    if (!std::isfinite(candidate.logit)) continue;
    const double off = static_cast<double>(candidate.logit) - mean;
    squares += off * off;
  }
  const double sigma = std::sqrt(squares / static_cast<double>(count));
  const double lowest =
      static_cast<double>(candidates.max_logit()) - static_cast<double>(n) * sigma;
  candidates.change_all([&](Candidate& candidate) {
    if (static_cast<double>(candidate.logit) < lowest) {
      candidate.logit = -std::numeric_limits<float>::infinity();
    }
  });
}

}  // namespace godwit::sampling
