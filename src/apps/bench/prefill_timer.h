// Times prompts at given depths of a context that was filled without computing it. A prompt waits
// for arithmetic where decode waits for memory: beside tokens per second stand the multiply-adds of
// its matrices and of attention.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/bench_report.h"
#include "apps/bench/state_fill.h"
#include "base/result.h"
#include "engine/session.h"

namespace godwit::apps {

struct PrefillRow {
  BenchRow row;
  double multiply_adds_per_token = 0;  // mean over the prompt

  [[nodiscard]] double tokens_per_s() const;              // median of the repetitions
  [[nodiscard]] double giga_multiply_adds_per_s() const;  // at that speed
};

class PrefillTimer {
 public:
  PrefillTimer(engine::Session& session, StateFiller filler)
      : session_(session), filler_(std::move(filler)) {}

  // One prompt that does not count, then the repetitions.
  [[nodiscard]] Result<PrefillRow> measure(const BenchTest& test, size_t n_repetitions);
  [[nodiscard]] size_t n_file_positions() const { return filler_.n_file_positions(); }

 private:
  [[nodiscard]] Result<double> run(const BenchTest& test);

  engine::Session& session_;
  StateFiller filler_;
};

[[nodiscard]] std::vector<ReportColumn> prefill_columns();
[[nodiscard]] ReportRow prefill_report_row(const BenchSetting& setting, const std::string& fill,
                                           const PrefillRow& row);

}  // namespace godwit::apps
