#include "apps/bench_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

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

double percent(const BenchSetting& setting, const BenchRow& row) {
  return setting.bandwidth_gbps > 0 ? 100 * row.gbps() / setting.bandwidth_gbps : 0;
}

ordered_json row_json(const BenchSetting& setting, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_s();
  return {{"build_commit", setting.commit},
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
          {"n_prompt", row.n_prompt},
          {"n_gen", row.n_gen},
          {"n_depth", row.n_depth},
          {"test_time", row.time},
          {"avg_ns", mean(row.samples_ns)},
          {"stddev_ns", deviation(row.samples_ns)},
          {"avg_ts", mean(speeds)},
          {"stddev_ts", deviation(speeds)},
          {"samples_ns", row.samples_ns},
          {"samples_ts", speeds},
          {"isa", setting.isa},
          {"bytes_per_token", row.bytes_per_token},
          {"gbps", row.gbps()},
          {"measured_bandwidth_gbps", setting.bandwidth_gbps},
          {"percent_of_bandwidth", percent(setting, row)}};
}

std::string csv_line(const ordered_json& row, bool names) {
  std::string line;
  for (const auto& [key, value] : row.items()) {
    if (value.is_array()) continue;  // samples are for JSON
    if (!line.empty()) line += ',';
    line += names ? key : value.dump();
  }
  return line + '\n';
}

constexpr const char* kMarkdownRow =
    "| {:<26} | {:>10} | {:>9} | {:<9} | {:>7} | {:>16} | {:>20} | {:>11} | {:>7} | {:>6} |\n";

std::string markdown_row(const BenchSetting& setting, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_s();
  return fmt::format(
      kMarkdownRow, setting.model_type,
      fmt::format("{:.2f} MiB", static_cast<double>(setting.model_bytes) / (1 << 20)),
      fmt::format("{:.2f} M", static_cast<double>(setting.n_params) * 1e-6), setting.backend,
      setting.n_threads, row.test(),
      fmt::format("{:.2f} ± {:.2f}", mean(speeds), deviation(speeds)),
      fmt::format("{:.2f}", row.bytes_per_token * 1e-6), fmt::format("{:.2f}", row.gbps()),
      fmt::format("{:.1f}", percent(setting, row)));
}

}  // namespace

std::string BenchRow::test() const {
  std::string name;
  if (n_prompt > 0) name = fmt::format("pp{}", n_prompt);
  if (n_gen > 0) name += fmt::format("{}tg{}", n_prompt > 0 ? "+" : "", n_gen);
  if (n_depth > 0) name += fmt::format(" @ d{}", n_depth);
  return name;
}

std::vector<double> BenchRow::tokens_per_s() const {
  std::vector<double> speeds;
  for (const double ns : samples_ns) {
    speeds.push_back(static_cast<double>(n_prompt + n_gen) / (ns * 1e-9));
  }
  return speeds;
}

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
      return (first ? "  " : ",\n  ") + row_json(setting, row).dump();
    case BenchFormat::kJsonLines:
      return row_json(setting, row).dump() + '\n';
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
