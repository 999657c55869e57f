// The rows of a benchmark and their four forms: Markdown, CSV, JSON, JSON lines. Column names and
// keys are llama-bench's, so that scripts that read one read the other; Godwit's own come after.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench_plan.h"
#include "base/result.h"
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

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

[[nodiscard]] Result<BenchFormat> parse_bench_format(const std::string& name);

// Text before the first row, of one row, and after the last.
[[nodiscard]] std::string bench_header(BenchFormat format, const BenchSetting& setting);
[[nodiscard]] std::string bench_row(BenchFormat format, const BenchSetting& setting,
                                    const BenchRow& row, bool first);
[[nodiscard]] std::string bench_footer(BenchFormat format, const BenchSetting& setting);

}  // namespace godwit::apps
