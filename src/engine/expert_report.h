// What the cache of routed experts did while something ran, layer by layer of the model, beside
// what the process read: for the figures of commands. A report is a difference of two counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experts/statistics.h"
#include "os/io_counters.h"

namespace godwit::engine {

class Engine;

struct ExpertReport {
  struct Layer {
    std::string name;  // "blk.3"
    experts::LayerStatistics counts;
  };
  std::vector<Layer> layers;   // empty: every expert is resident
  uint64_t slot_bytes = 0;     // never above the budget
  uint64_t staging_bytes = 0;  // of readers, beside it
  IoCounters io;               // of the whole process; 0 where the system does not tell

  [[nodiscard]] experts::LayerStatistics total() const;
  // Adds a difference of the same engine's, or takes it over where there is none yet.
  void add(const ExpertReport& difference);
  [[nodiscard]] ExpertReport since(const ExpertReport& before) const;
};

// Since the engine was loaded; io since the process began.
[[nodiscard]] ExpertReport expert_report(const Engine& engine);

}  // namespace godwit::engine
