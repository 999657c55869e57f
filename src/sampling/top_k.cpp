#include <algorithm>

#include "sampling/steps.h"

namespace godwit::sampling {

// The k likeliest, in order.
void apply_top_k(Candidates& candidates, const StepInput& in) {
  candidates.keep_top(std::min(candidates.size(), static_cast<size_t>(in.settings.top_k)));
}

}  // namespace godwit::sampling
