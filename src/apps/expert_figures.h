// The figures of the cache of routed experts, as the reports of commands show them: shares and
// bytes per token from an engine's counts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/expert_report.h"

namespace godwit::apps {

struct ExpertFigures {
  double hit_rate = 1;            // 0 to 1
  double bytes_per_token = 0;     // read for experts
  double device_per_token = 0;    // read from storage, for whatever purpose
  double stall_ms_per_token = 0;  // that computing stood still for a read
};

[[nodiscard]] ExpertFigures expert_figures(const engine::ExpertReport& report, size_t n_tokens);

// "experts: 91.2 % there, 14.1 MB/token read (0.0 from the device), 1.2 ms/token waited"
[[nodiscard]] std::string expert_line(const engine::ExpertReport& report, size_t n_tokens);

// An object: the same, and the counts of every layer.
[[nodiscard]] nlohmann::json expert_json(const engine::ExpertReport& report, size_t n_tokens);

}  // namespace godwit::apps
