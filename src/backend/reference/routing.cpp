#include "backend/reference/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace godwit::reference {

void route_row(std::span<const double> logits, bool renormalise, std::span<double> ids,
               std::span<double> weights) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - logits[order[0]]);
  double chosen = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<double>(order[i]);
    weights[i] = std::exp(logits[order[i]] - logits[order[0]]) / sum;
    chosen += weights[i];
  }
  if (!renormalise) return;
  for (double& weight : weights) weight /= chosen;
}

}  // namespace godwit::reference
