// Pools of 1 to 8 threads, whatever the machine has, for checks that results do not depend on how
// many there are; and how much a check of kernels tries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "os/thread_pool.h"

namespace godwit::testing {

enum class CheckExtent : uint8_t { kQuick, kFull };

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

}  // namespace godwit::testing
