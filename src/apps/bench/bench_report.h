// The rows of a benchmark of a whole model. Column names and keys are llama-bench's, so that
// scripts that read one read the other; Godwit's own come after.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/bench/bench_plan.h"
#include "apps/bench/report.h"
#include "engine/expert_report.h"

namespace godwit::apps {

// What all rows of a run share.
struct BenchSetting {
  std::string model_path;
  std::string model_type;  // "llama 135M Q4_1"
  uint64_t model_bytes = 0;
  uint64_t n_params = 0;
  std::string backend;
  std::string processor;
  std::string isa;
  std::string commit;
  size_t n_threads = 0;
  size_t chunk_tokens = 0;
  std::string k_type;
  std::string v_type;
  double bandwidth_gbps = 0;      // measured in this run
  std::string expert_cache = {};  // "full", "mmap", "4096"; "": no experts
  std::string route_trace = {};   // in place of the routers
  uint32_t activation_bits = 16;  // as models run unless asked
};

struct BenchRow {
  BenchTest test;
  std::string time;                   // ISO 8601, UTC
  std::vector<double> samples_ns;     // one per repetition
  double bytes_per_token = 0;         // traffic.h, mean over the tokens of the row
  engine::ExpertReport experts = {};  // of all repetitions; no layers where all are resident

  [[nodiscard]] std::vector<double> tokens_per_s() const;
  [[nodiscard]] double gbps() const;      // at the mean speed
  [[nodiscard]] size_t n_tokens() const;  // of all repetitions
};

[[nodiscard]] std::vector<ReportColumn> bench_columns();
[[nodiscard]] ReportRow bench_row(const BenchSetting& setting, const BenchRow& row);
// Where the rows were measured, below the table; the footer tells the bandwidth too.
[[nodiscard]] std::string machine_line(const BenchSetting& setting);
[[nodiscard]] std::string bench_footer(const BenchSetting& setting);

// Parts of rows that other tables of whole models have too.
// The setting, and which test: the keys in front.
[[nodiscard]] nlohmann::ordered_json setting_json(const BenchSetting& setting, const BenchRow& row);
// What the cache of experts did; adds nothing where there is none.
void add_expert_figures(nlohmann::ordered_json& json, const BenchSetting& setting,
                        const BenchRow& row);
[[nodiscard]] std::string expert_note(const BenchSetting& setting, const BenchRow& row);

}  // namespace godwit::apps
