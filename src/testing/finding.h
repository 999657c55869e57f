// What a check found out about one thing: the worst of many comparisons, with the bound it must
// keep. Filled by testing/kernels and testing/parity, shown by `godwit check`, asserted by tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace godwit::testing {

struct Finding {
  std::string subject;   // "q4_k avx2"
  std::string property;  // "double", "bits"
  size_t n_cases = 0;    // problems compared
  double error = 0;      // where error / bound is largest
  double bound = 0;      // 0: nothing but equality holds; infinity: told, not judged
  std::string at;        // the case of that error

  [[nodiscard]] bool holds() const { return error <= bound; }  // never with NaN
};

using FindingSink = std::function<void(const Finding&)>;

// Collects the comparisons of one subject and property.
class FindingTally {
 public:
  FindingTally(std::string subject, std::string property, double bound)
      : finding_{std::move(subject), std::move(property), 0, 0.0, bound, ""} {}

  [[nodiscard]] const Finding& finding() const { return finding_; }

  void begin_case() { ++finding_.n_cases; }
  // `ratio`: of the error to its bound. `place` is called only where this is the worst so far.
  template <class Place>
  void add(double error, double bound, const Place& place) {
    // An error that is no number is worse than all others, and stays.
    double ratio = error == 0.0 ? 0.0 : error / bound;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio <= worst_) return;
    worst_ = ratio;
    finding_.error = error;
    finding_.bound = bound;
    finding_.at = place();
  }
  // Counts the floats that differ in a bit; the bound is none.
  template <class Place>
  void add_bits(std::span<const float> found, std::span<const float> expected, const Place& place) {
    if (found.size() == expected.size() &&
        std::memcmp(found.data(), expected.data(), found.size_bytes()) == 0) {
      return;
    }
    size_t n = found.size() == expected.size() ? 0 : found.size() + expected.size();
    for (size_t i = 0; n == 0 && i < found.size(); ++i) {
      if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0) n = i + 1;
    }
    add(1.0, 0.0, [&] { return place() + ", float " + std::to_string(n - 1); });
  }

 private:
  Finding finding_;
  double worst_ = 0;
};

}  // namespace godwit::testing
