#include <algorithm>
#include <cmath>

#include "sampling/steps.h"

namespace godwit::sampling {

// Those at least p times as likely as the likeliest, compared by logits; at least min_keep.
void apply_min_p(Candidates& candidates, const StepInput& in) {
  const size_t at_least = std::max<size_t>(1, static_cast<size_t>(in.settings.min_keep));
  const float lowest = candidates.max_logit() + std::log(in.settings.min_p);
  const auto enough = static_cast<size_t>(std::ranges::count_if(
      candidates.items(), [&](const Candidate& c) { return c.logit >= lowest; }));
  if (enough >= at_least) {
    candidates.keep_at_least(lowest);
  } else {
    candidates.keep_top(at_least);
  }
}

}  // namespace godwit::sampling
