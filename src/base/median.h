// Medians and quantiles of samples, as all benches mean them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace godwit {

// The sample at `quantile` (0 to 1) of the sorted ones, between two of them in proportion; 0 of
// none.
[[nodiscard]] inline double quantile_of(std::vector<double> samples, double quantile) {
  if (samples.empty()) return 0;
  std::ranges::sort(samples);
  const double place = quantile * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double part = place - static_cast<double>(below);
  return samples[below] + part * (samples[above] - samples[below]);
}

[[nodiscard]] inline double median_of(std::vector<double> samples) {
  return quantile_of(std::move(samples), 0.5);
}

}  // namespace godwit
