#include "apps/bench_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/expert_figures.h"

namespace godwit::apps {
namespace {

using nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// llama-bench writes nanoseconds as integers.
std::vector<int64_t> whole(const std::vector<double>& values) {
  std::vector<int64_t> rounded;
  for (const double value : values) rounded.push_back(std::llround(value));
  return rounded;
}

double percent(const BenchSetting& setting, const BenchRow& row) {
  return setting.bandwidth_gbps > 0 ? 100 * row.gbps() / setting.bandwidth_gbps : 0;
}

ordered_json row_json(const BenchSetting& setting, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_s();
  ordered_json json = {{"build_commit", setting.commit},
                       {"cpu_info", setting.processor},
                       {"backends", setting.backend},
                       {"model_filename", setting.model_path},
                       {"model_type", setting.model_type},
                       {"model_size", setting.model_bytes},
                       {"model_n_params", setting.n_params},
                       {"n_ubatch", setting.chunk_tokens},
                       {"n_threads", setting.n_threads},
                       {"type_k", setting.k_type},
                       {"type_v", setting.v_type},
                       {"n_prompt", row.test.n_prompt},
                       {"n_gen", row.test.n_gen},
                       {"n_depth", row.test.n_depth},
                       {"test_time", row.time},
                       {"avg_ns", std::llround(mean(row.samples_ns))},
                       {"stddev_ns", std::llround(deviation(row.samples_ns))},
                       {"avg_ts", mean(speeds)},
                       {"stddev_ts", deviation(speeds)},
                       {"samples_ns", whole(row.samples_ns)},
                       {"samples_ts", speeds},
                       {"isa", setting.isa},
                       {"bytes_per_token", row.bytes_per_token},
                       {"gbps", row.gbps()},
                       {"measured_bandwidth_gbps", setting.bandwidth_gbps},
                       {"percent_of_bandwidth", percent(setting, row)}};
  if (setting.expert_cache.empty()) return json;
  const ExpertFigures f = expert_figures(row.experts, row.n_tokens());
  json["expert_cache"] = setting.expert_cache;
  json["route_trace"] = setting.route_trace;
  json["expert_hit_rate"] = f.hit_rate;
  json["expert_bytes_per_token"] = f.bytes_per_token;
  json["device_bytes_per_token"] = f.device_per_token;
  json["expert_stall_ms_per_token"] = f.stall_ms_per_token;
  json["expert_layers"] = expert_json(row.experts, row.n_tokens())["layers"];
  return json;
}

// As llama-bench: every value in quotes, a quote within doubled.
std::string csv_value(const ordered_json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// A path may hold any bytes.
std::string line_of(const ordered_json& row) {
  return row.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string csv_line(const ordered_json& row, bool names) {
  std::string line;
  for (const auto& [key, value] : row.items()) {
    if (value.is_array()) continue;  // samples are for JSON
    if (!line.empty()) line += ',';
    line += names ? key : csv_value(value);
  }
  return line + '\n';
}

constexpr const char* kMarkdownRow =
    "| {:<26} | {:>10} | {:>9} | {:<9} | {:>7} | {:>16} | {:>20} | {:>11} | {:>7} | {:>6} |\n";

std::string size_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 0x1p30 ? fmt::format("{:.2f} MiB", value / 0x1p20)
                        : fmt::format("{:.2f} GiB", value / 0x1p30);
}

std::string count_text(uint64_t n) {
  const auto value = static_cast<double>(n);
  return value < 1e9 ? fmt::format("{:.2f} M", value * 1e-6)
                     : fmt::format("{:.2f} B", value * 1e-9);
}

std::string markdown_row(const BenchSetting& setting, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_s();
  std::string text =
      fmt::format(kMarkdownRow, setting.model_type, size_text(setting.model_bytes),
                  count_text(setting.n_params), setting.backend, setting.n_threads, row.test.name(),
                  fmt::format("{:.2f} \u00b1 {:.2f}", mean(speeds), deviation(speeds)),
                  fmt::format("{:.2f}", row.bytes_per_token * 1e-6),
                  fmt::format("{:.2f}", row.gbps()), fmt::format("{:.1f}", percent(setting, row)));
  if (row.experts.layers.empty()) return text;
  // Not in the table: its columns are llama-bench's.
  return text +
         fmt::format("{}: {}\n", setting.expert_cache, expert_line(row.experts, row.n_tokens()));
}

}  // namespace

std::vector<double> BenchRow::tokens_per_s() const {
  std::vector<double> speeds;
  for (const double ns : samples_ns) {
    speeds.push_back(static_cast<double>(test.n_prompt + test.n_gen) / (ns * 1e-9));
  }
  return speeds;
}

size_t BenchRow::n_tokens() const { return samples_ns.size() * (test.n_prompt + test.n_gen); }

double BenchRow::gbps() const { return bytes_per_token * mean(tokens_per_s()) * 1e-9; }

Result<BenchFormat> parse_bench_format(const std::string& name) {
  if (name == "md") return BenchFormat::kMarkdown;
  if (name == "csv") return BenchFormat::kCsv;
  if (name == "json") return BenchFormat::kJson;
  if (name == "jsonl") return BenchFormat::kJsonLines;
  return fail("output format '{}': expected md, csv, json or jsonl", name);
}

std::string bench_header(BenchFormat format, const BenchSetting& setting) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return fmt::format(kMarkdownRow, "model", "size", "params", "backend", "threads", "test",
                         "t/s", "MB/token", "GB/s", "% bw") +
             fmt::format(kMarkdownRow, std::string(26, '-'), "---------:", "--------:", "---------",
                         "------:", "---------------:", "-------------------:", "----------:",
                         "------:", "-----:");
    case BenchFormat::kCsv:
      return csv_line(row_json(setting, {}), true);
    case BenchFormat::kJson:
      return "[\n";
    case BenchFormat::kJsonLines:
      return "";
  }
  return "";
}

std::string bench_row(BenchFormat format, const BenchSetting& setting, const BenchRow& row,
                      bool first) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return markdown_row(setting, row);
    case BenchFormat::kCsv:
      return csv_line(row_json(setting, row), false);
    case BenchFormat::kJson:
      return (first ? "  " : ",\n  ") + line_of(row_json(setting, row));
    case BenchFormat::kJsonLines:
      return line_of(row_json(setting, row)) + '\n';
  }
  return "";
}

std::string bench_footer(BenchFormat format, const BenchSetting& setting) {
  switch (format) {
    case BenchFormat::kMarkdown:
      return fmt::format(
          "\n{}, {}, KV {}/{}; {:.1f} GB/s read bandwidth measured in this run; commit {}\n",
          setting.processor, setting.isa, setting.k_type, setting.v_type, setting.bandwidth_gbps,
          setting.commit);
    case BenchFormat::kJson:
      return "\n]\n";
    case BenchFormat::kCsv:
    case BenchFormat::kJsonLines:
      return "";
  }
  return "";
}

}  // namespace godwit::apps
