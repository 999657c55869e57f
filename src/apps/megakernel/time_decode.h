// `godwit_megakernel time`: microseconds per token of the executors beside each other, over lengths
// of history, with the read bandwidth measured in the same run.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct TimeOptions {
  std::string shape = "llama-1b";
  std::vector<uint64_t> positions{1024, 2048, 8192, 32768, 65536, 131072};
  std::vector<uint64_t> budget_positions{2048, 32768};
  std::vector<std::string> variants{"persistent", "stepwise-pdl", "stepwise"};
  uint64_t n_samples = 40;
  std::string json;
};

void add_time_options(CLI::App& command, TimeOptions& options);
// Errors: no device, an unknown variant, nothing that could be timed. A variant that could not is
// a line of the table.
[[nodiscard]] Status time_decode(const TimeOptions& options);

}  // namespace godwit::apps
