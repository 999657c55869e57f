// What the store did: plain counters for the caller to print. They are exact, not sampled; `stall`
// is the time the caller stood in Lease::next without an expert to compute with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::experts {

struct LayerStatistics {
  uint64_t hits = 0;    // experts that were resident when acquired (mmap: every expert)
  uint64_t misses = 0;  // the others
  uint64_t bytes_read = 0;
  uint64_t stall_us = 0;
  uint64_t failed_reads = 0;
  uint64_t prefetches = 0;          // reads begun by a hint
  uint64_t prefetch_hits = 0;       // of the hits, those whose read a hint began
  uint64_t prefetch_late = 0;       // of the misses, those whose read a hint had begun
  uint64_t prefetch_cancelled = 0;  // dropped before they were read
  uint64_t prefetch_wasted = 0;     // read, then evicted unused

  LayerStatistics& operator+=(const LayerStatistics& other);
  // What has been counted since `before`.
  [[nodiscard]] LayerStatistics since(const LayerStatistics& before) const;
  // The share of experts asked for that were resident without a read that a hint had begun for
  // this very use; 1 where none was asked for.
  [[nodiscard]] double hit_rate() const;
};

struct Statistics {
  std::vector<LayerStatistics> layers;
  uint64_t slot_bytes = 0;     // of all slots: never above the budget
  uint64_t staging_bytes = 0;  // of the read threads, beside it

  [[nodiscard]] LayerStatistics total() const;
};

// "hits 90.1 % (901 of 1000), 80.1 MiB read, stalled 12.3 ms, prefetched 10: 5 used, ..."
[[nodiscard]] std::string describe(const LayerStatistics& statistics);

}  // namespace godwit::experts
