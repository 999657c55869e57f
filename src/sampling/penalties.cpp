#include <algorithm>
#include <cmath>

#include "sampling/steps.h"

namespace godwit::sampling {

int32_t& TokenNotes::at(int32_t id) {
  const auto i = static_cast<size_t>(id);
  if (!marked[i]) {
    marked[i] = true;
    ids.push_back(id);
  }
  return number[i];
}

void TokenNotes::clear() {
  for (const int32_t id : ids) {
    marked[static_cast<size_t>(id)] = false;
    number[static_cast<size_t>(id)] = 0;
  }
  ids.clear();
}

// Repetition (Keskar et al. 2019), frequency and presence penalties over the last tokens. A
// positive logit is divided and a negative one multiplied, so that a penalty never helps.
void apply_penalties(Candidates& candidates, const StepInput& in) {
  const SamplerSettings& s = in.settings;
  const bool off =
      s.penalty_last_n == 0 ||
      (s.repeat_penalty == 1.0f && s.frequency_penalty == 0.0f && s.presence_penalty == 0.0f);
  if (off) return;
  std::span<const TokenId> recent = in.history;
  if (s.penalty_last_n > 0) {
    recent = recent.last(std::min(recent.size(), static_cast<size_t>(s.penalty_last_n)));
  }
  for (const TokenId token : recent) ++in.notes.at(token.value);
  candidates.change(in.notes.ids, in.notes.marked, [&](Candidate& candidate) {
    const auto count = static_cast<float>(in.notes.at(candidate.id));
    float& logit = candidate.logit;
    logit = logit <= 0.0f ? logit * s.repeat_penalty : logit / s.repeat_penalty;
    logit -= count * s.frequency_penalty + s.presence_penalty;
  });
  in.notes.clear();
}

}  // namespace godwit::sampling
