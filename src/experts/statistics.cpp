#include "experts/statistics.h"

#include <fmt/format.h>

namespace godwit::experts {

LayerStatistics& LayerStatistics::operator+=(const LayerStatistics& other) {
  hits += other.hits;
  misses += other.misses;
  bytes_read += other.bytes_read;
  stall_us += other.stall_us;
  failed_reads += other.failed_reads;
  prefetches += other.prefetches;
  prefetch_hits += other.prefetch_hits;
  prefetch_late += other.prefetch_late;
  prefetch_cancelled += other.prefetch_cancelled;
  prefetch_wasted += other.prefetch_wasted;
  return *this;
}

LayerStatistics LayerStatistics::since(const LayerStatistics& before) const {
  return {.hits = hits - before.hits,
          .misses = misses - before.misses,
          .bytes_read = bytes_read - before.bytes_read,
          .stall_us = stall_us - before.stall_us,
          .failed_reads = failed_reads - before.failed_reads,
          .prefetches = prefetches - before.prefetches,
          .prefetch_hits = prefetch_hits - before.prefetch_hits,
          .prefetch_late = prefetch_late - before.prefetch_late,
          .prefetch_cancelled = prefetch_cancelled - before.prefetch_cancelled,
          .prefetch_wasted = prefetch_wasted - before.prefetch_wasted};
}

double LayerStatistics::hit_rate() const {
  if (hits + misses == 0) return 1.0;
  return static_cast<double>(hits - prefetch_hits) / static_cast<double>(hits + misses);
}

LayerStatistics Statistics::total() const {
  LayerStatistics sum;
  for (const LayerStatistics& layer : layers) sum += layer;
  return sum;
}

std::string describe(const LayerStatistics& s) {
  const uint64_t asked = s.hits + s.misses;
  const double share =
      asked == 0 ? 0.0 : 100.0 * static_cast<double>(s.hits) / static_cast<double>(asked);
  std::string text = fmt::format(
      "hits {:.1f} % ({} of {}), {:.1f} MiB read, stalled {:.1f} ms", share, s.hits, asked,
      static_cast<double>(s.bytes_read) / (1 << 20), static_cast<double>(s.stall_us) / 1e3);
  if (s.prefetches > 0) {
    text += fmt::format(", prefetched {}: {} used, {} late, {} cancelled, {} unused", s.prefetches,
                        s.prefetch_hits, s.prefetch_late, s.prefetch_cancelled, s.prefetch_wasted);
  }
  if (s.failed_reads > 0) text += fmt::format(", {} reads failed", s.failed_reads);
  return text;
}

}  // namespace godwit::experts
