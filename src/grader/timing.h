// Times whole decode steps of several variants of a backend beside each other, at several lengths
// of history. A time is given only for logits that agree with double precision just before.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grader/make_twin.h"
#include "grader/subject.h"

namespace godwit::grader {

struct TimedVariant {
  std::string name;
  std::string backend;
  // Set while the backend is made.
  std::vector<std::pair<std::string, std::string>> environment;
};

struct TimingSettings {
  GradedShape shape;
  TwinPlace place = TwinPlace::kDevice;
  std::vector<uint64_t> lengths;  // of the history, the newest included
  std::vector<TimedVariant> variants;
  std::vector<uint64_t> budget_lengths;  // of those, the ones taken apart step by step
  uint64_t n_warm_up = 20;
  uint64_t n_samples = 40;
};

struct TimedRow {
  std::string variant;
  uint64_t length = 0;
  double error = 0;               // against D
  uint64_t bytes = 0;             // that the step must move (program/traffic.h)
  std::vector<double> wall_us;    // run() from call to return, logits on the host
  std::vector<double> device_us;  // of the steps alone; empty where the backend does not tell
};

// Where a token's time goes: the steps of one kind ("attend"), over all layers. From the times of
// the Program's first n steps, for every n: the differences of neighbours.
struct StepBudget {
  std::string variant;
  uint64_t length = 0;
  std::string kind;
  uint64_t n_steps = 0;
  uint64_t bytes = 0;
  double us = 0;
};

struct Timing {
  std::vector<TimedRow> rows;
  std::vector<StepBudget> budgets;
  std::vector<std::pair<std::string, std::string>> descriptions;  // variant, what it says
  std::vector<std::string> problems;  // variants that could not be made, logits that differ
};

[[nodiscard]] double median(std::vector<double> samples);

// Errors: no twin. Variants take turns sample by sample, forwards and backwards.
[[nodiscard]] Result<Timing> time_variants(const TimingSettings& settings);

// One JSON object of it all, with the read bandwidth measured beside.
[[nodiscard]] std::string timing_json(const TimingSettings& settings, const Timing& timing,
                                      const std::vector<double>& bandwidth_gbs);
// us per token and percent of the floor, one line per length.
[[nodiscard]] std::string timing_text(const Timing& timing,
                                      const std::vector<double>& bandwidth_gbs);

}  // namespace godwit::grader
