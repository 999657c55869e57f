// Times decode steps at given depths of a context that was filled without computing it: the layers,
// the output matrix and the sampler chain, token by token. The read bandwidth is measured before
// every repetition, so that a share of the floor never joins two moments of a changing machine.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/bench_report.h"
#include "apps/bench/state_fill.h"
#include "base/result.h"
#include "engine/session.h"
#include "sampling/sampler.h"

namespace godwit::apps {

struct DecodeTimerSettings {
  std::vector<size_t> start_positions;  // none: of a file its end, otherwise 0
  size_t n_tokens = 32;                 // of one repetition
  size_t n_repetitions = 3;
  uint64_t seed = 1;  // of the fill, and of the default sampler chain
};

struct DecodeRepetition {
  std::vector<double> token_us;  // in order
  double bandwidth_gbps = 0;     // just before
};

struct DecodeRow {
  BenchRow row;  // samples_ns: the sums of the repetitions
  std::vector<DecodeRepetition> repetitions;

  [[nodiscard]] double token_us(double quantile) const;  // 0.5: the median of all tokens
  [[nodiscard]] double tokens_per_s() const;             // at the median
  [[nodiscard]] double gbps() const;                     // likewise
  [[nodiscard]] double bandwidth_gbps() const;           // median of the repetitions
  [[nodiscard]] double floor_us() const;                 // bytes at that bandwidth
  // Median of the repetitions' shares of their own floors, 100: as fast as memory can be read.
  [[nodiscard]] double percent_of_floor() const;
};

class DecodeTimer {
 public:
  // Errors: whatever the sampler or the fill refuses.
  [[nodiscard]] static Result<DecodeTimer> create(engine::Session& session, const StateFill& fill,
                                                  const DecodeTimerSettings& settings);

  [[nodiscard]] std::vector<size_t> start_positions() const;
  [[nodiscard]] Result<DecodeRow> measure(size_t start_position);

 private:
  DecodeTimer(engine::Session& session, DecodeTimerSettings settings, StateFiller filler,
              sampling::Sampler sampler);
  [[nodiscard]] Result<std::vector<double>> decode(size_t start_position, size_t n_tokens);

  engine::Session& session_;
  DecodeTimerSettings settings_;
  StateFiller filler_;
  sampling::Sampler sampler_;
};

[[nodiscard]] std::vector<ReportColumn> decode_columns();
[[nodiscard]] ReportRow decode_report_row(const BenchSetting& setting, const std::string& fill,
                                          const DecodeRow& row);

}  // namespace godwit::apps
