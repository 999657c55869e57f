#include "base/random.h"
#include "sampling/steps.h"

namespace godwit::sampling {
namespace {

// A stream of its own beside the one that the final draw takes from.
constexpr uint64_t kXtcStream = 0x5843546368616e63ull;

}  // namespace

// "Exclude top choices": now and then, of the tokens that reach the threshold, only the least
// likely stays. A threshold over one half can never be reached twice and switches it off.
void apply_xtc(Candidates& candidates, const StepInput& in) {
  const SamplerSettings& s = in.settings;
  if (candidates.size() < 2) return;
  const double chance = random_unit(s.seed ^ kXtcStream, static_cast<uint64_t>(in.position.value));
  if (chance > static_cast<double>(s.xtc_probability)) return;

  const double wanted = static_cast<double>(s.xtc_threshold) * candidates.weights().sum;
  const float max = candidates.max_logit();
  size_t reaching = 0;
  for (; reaching < candidates.size(); ++reaching) {
    if (reaching >= candidates.sorted()) candidates.sort_top(more_than(reaching));
    if (softmax_weight(candidates[reaching].logit, max) < wanted) break;
  }
  if (reaching < 2) return;
  const size_t dropped = reaching - 1;
  if (candidates.size() - dropped < static_cast<size_t>(s.min_keep)) return;
  candidates.drop_top(dropped);
}

}  // namespace godwit::sampling
