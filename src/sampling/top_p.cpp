#include "sampling/steps.h"

namespace godwit::sampling {

// The fewest likeliest tokens whose probabilities sum to at least p (nucleus sampling, Holtzman et
// al. 2019), and at least min_keep. Sorts only as far as the sum has to go.
void apply_top_p(Candidates& candidates, const StepInput& in) {
  const auto min_keep = static_cast<size_t>(in.settings.min_keep);
  const double total = candidates.weights().sum;
  const float max = candidates.max_logit();
  const double wanted = static_cast<double>(in.settings.top_p) * total;
  double sum = 0.0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i >= candidates.sorted()) candidates.sort_top(more_than(i));
    sum += softmax_weight(candidates[i].logit, max);
    if (sum >= wanted && i + 1 >= min_keep) {
      candidates.keep_top(i + 1);
      return;
    }
  }
}

}  // namespace godwit::sampling
