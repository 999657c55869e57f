// The read bandwidth of main memory on this machine now: the ceiling that every GB/s is set beside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace godwit {

// GB/s (10^9) that `n_threads` threads reach together over a buffer far larger than the caches:
// the best of a few passes, a fraction of a second in all. Errors: memory.
[[nodiscard]] Result<double> measure_read_bandwidth_gbps(size_t n_threads);

// Has memory deliver every cache line of `bytes`, as the measurement does; for benches that measure
// it between rounds of their own. Returns a sum of words, so that nothing is optimised away.
[[nodiscard]] uint64_t read_lines(std::span<const std::byte> bytes);

}  // namespace godwit
