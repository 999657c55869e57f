// What a check of kernels found out about one of them: the worst of many comparisons, with the
// bound it must keep. Filled by matvec_check.h and attention_check.h, shown by
// `godwit check kernels`, asserted by tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/thread_pool.h"

namespace godwit::testing {

struct KernelFinding {
  std::string kernel;    // "q4_k avx2"
  std::string property;  // "double", "rounding", "bits", "threads", "rows", "counting", "needle"
  size_t n_cases = 0;    // problems compared
  double error = 0;      // where error / bound is largest
  double bound = 0;      // 0: nothing but equality holds
  std::string at;        // the case of that error

  [[nodiscard]] bool holds() const { return error <= bound; }  // never with NaN
};

using FindingSink = std::function<void(const KernelFinding&)>;

enum class CheckExtent : uint8_t { kQuick, kFull };

// Pools of 1 to 8 threads, whatever the machine has.
class ThreadCounts {
 public:
  ThreadCounts() {
    for (size_t n = 1; n <= 8; ++n) pools_.push_back(std::make_unique<ThreadPool>(n));
  }
  [[nodiscard]] ThreadPool& one() const { return *pools_.front(); }
  template <class F>
  void for_each(const F& f) const {
    for (const auto& pool : pools_) f(*pool);
  }

 private:
  std::vector<std::unique_ptr<ThreadPool>> pools_;
};

// Collects the comparisons of one kernel and property.
class FindingTally {
 public:
  FindingTally(std::string kernel, std::string property, double bound)
      : finding_{std::move(kernel), std::move(property), 0, 0.0, bound, ""} {}

  [[nodiscard]] const KernelFinding& finding() const { return finding_; }

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
  KernelFinding finding_;
  double worst_ = 0;
};

}  // namespace godwit::testing
