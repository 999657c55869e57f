// The one measure of difference that the grader uses: ||a - b|| / ||b|| over a vector, in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace godwit::grader {

// Infinity where it has no meaning: a NaN or an infinity on either side, different lengths, or
// b = 0 unless a = 0 too. So it can be compared with a tolerance without another thought.
template <class A, class B>
[[nodiscard]] double relative_error(std::span<const A> a, std::span<const B> b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinity;
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  if (!std::isfinite(difference) || !std::isfinite(norm)) return kInfinity;
  if (norm == 0) return difference == 0 ? 0.0 : kInfinity;
  return std::sqrt(difference / norm);
}

}  // namespace godwit::grader
