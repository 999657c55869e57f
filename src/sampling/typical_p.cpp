#include <cmath>
#include <limits>
#include <vector>

#include "sampling/steps.h"

namespace godwit::sampling {
namespace {

struct Surprise {
  Candidate candidate;
  float probability = 0.0f;
  float distance = 0.0f;  // of the surprise -log p from the entropy
};

bool more_typical(const Surprise& a, const Surprise& b) {
  if (a.distance != b.distance) return a.distance < b.distance;
  return ranks_before(a.candidate, b.candidate);
}

std::vector<Surprise> surprises(Candidates& candidates) {
  const Candidates::Weights weights = candidates.weights();
  std::vector<Surprise> found(candidates.size());
  double entropy = 0.0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double p = static_cast<double>(weights.values[i]) / weights.sum;
    if (p > 0.0) entropy -= p * std::log(p);
    found[i] = {.candidate = candidates[i], .probability = static_cast<float>(p)};
  }
  for (Surprise& s : found) {
    s.distance =
        s.probability > 0.0f
            ? static_cast<float>(std::abs(-std::log(static_cast<double>(s.probability)) - entropy))
            : std::numeric_limits<float>::infinity();
  }
  return found;
}

}  // namespace

// Those whose surprise is nearest the expected one, until their probabilities sum to more than p
// (locally typical sampling, Meister et al. 2022), and at least min_keep.
void apply_typical_p(Candidates& candidates, const StepInput& in) {
  const auto min_keep = static_cast<size_t>(in.settings.min_keep);
  std::vector<Surprise> found = surprises(candidates);
  std::vector<Candidate> kept;
  double sum = 0.0;
  size_t sorted = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i >= sorted) extend_sorted(std::span(found), sorted, more_than(i), more_typical);
    kept.push_back(found[i].candidate);
    sum += static_cast<double>(found[i].probability);
    if (sum > static_cast<double>(in.settings.typical_p) && i + 1 >= min_keep) break;
  }
  candidates.replace(kept);
}

}  // namespace godwit::sampling
