#include "apps/bench/bench_report.h"

#include <fmt/format.h>

#include <cmath>
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

std::vector<ReportColumn> bench_columns() {
  constexpr auto kLeft = ReportColumn::Align::kLeft;
  return {{"model", 26, kLeft}, {"size", 10}, {"params", 9}, {"backend", 9, kLeft},
          {"threads", 7},       {"test", 16}, {"t/s", 20},   {"MB/token", 11},
          {"GB/s", 7},          {"% bw", 6}};
}

ordered_json setting_json(const BenchSetting& setting, const BenchRow& row) {
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
          {"activation_bits", setting.activation_bits},
          {"bytes_per_token", row.bytes_per_token}};
}

void add_expert_figures(ordered_json& json, const BenchSetting& setting, const BenchRow& row) {
  if (setting.expert_cache.empty()) return;
  const ExpertFigures f = expert_figures(row.experts, row.n_tokens());
  json["expert_cache"] = setting.expert_cache;
  json["route_trace"] = setting.route_trace;
  json["expert_hit_rate"] = f.hit_rate;
  json["expert_bytes_per_token"] = f.bytes_per_token;
  json["device_bytes_per_token"] = f.device_per_token;
  json["expert_stall_ms_per_token"] = f.stall_ms_per_token;
  json["expert_layers"] = expert_json(row.experts, row.n_tokens())["layers"];
}

// Not in the table: its columns are llama-bench's.
std::string expert_note(const BenchSetting& setting, const BenchRow& row) {
  if (row.experts.layers.empty()) return "";
  return fmt::format("{}: {}", setting.expert_cache, expert_line(row.experts, row.n_tokens()));
}

ReportRow bench_row(const BenchSetting& setting, const BenchRow& row) {
  const std::vector<double> speeds = row.tokens_per_s();
  ordered_json json = setting_json(setting, row);
  json["gbps"] = row.gbps();
  json["measured_bandwidth_gbps"] = setting.bandwidth_gbps;
  json["percent_of_bandwidth"] = percent(setting, row);
  add_expert_figures(json, setting, row);
  return {
      .cells = {setting.model_type, size_text(setting.model_bytes), count_text(setting.n_params),
                setting.backend, fmt::format("{}", setting.n_threads), row.test.name(),
                fmt::format("{:.2f} \u00b1 {:.2f}", mean(speeds), deviation(speeds)),
                fmt::format("{:.2f}", row.bytes_per_token * 1e-6),
                fmt::format("{:.2f}", row.gbps()), fmt::format("{:.1f}", percent(setting, row))},
      .json = std::move(json),
      .note = expert_note(setting, row)};
}

std::string machine_line(const BenchSetting& setting) {
  return fmt::format("{}, {}, KV {}/{}{}; commit {}", setting.processor, setting.isa,
                     setting.k_type, setting.v_type,
                     setting.activation_bits == 16
                         ? ""
                         : fmt::format(", activations of {} bits", setting.activation_bits),
                     setting.commit);
}

std::string bench_footer(const BenchSetting& setting) {
  return fmt::format("{:.1f} GB/s read bandwidth measured in this run; {}", setting.bandwidth_gbps,
                     machine_line(setting));
}

}  // namespace godwit::apps
