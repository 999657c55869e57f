#include "apps/bench/prefill_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "apps/bench/bench_setting.h"
#include "apps/bench/multiply_adds.h"
#include "apps/bench/test_timer.h"
#include "base/median.h"

namespace godwit::apps {
namespace {

double multiply_adds_of(const engine::Engine& engine, const BenchTest& test) {
  double sum = 0;
  for (size_t i = 0; i < test.n_prompt; ++i) {
    sum += static_cast<double>(multiply_adds(engine.program(), test.n_depth + i));
  }
  return sum / static_cast<double>(test.n_prompt);
}

}  // namespace

double PrefillRow::tokens_per_s() const { return median_of(row.tokens_per_s()); }

double PrefillRow::giga_multiply_adds_per_s() const {
  return multiply_adds_per_token * tokens_per_s() * 1e-9;
}

// Nanoseconds of the prompt.
Result<double> PrefillTimer::run(const BenchTest& test) {
  if (Status s = filler_.fill(session_, test.n_depth); !s) return fail(s.error());
  std::vector<TokenId> tokens(session_.tokens().begin(), session_.tokens().end());
  for (size_t i = 0; i < test.n_prompt; ++i) {
    tokens.push_back(bench_token(session_.engine(), test.n_depth + i));
  }
  const auto start = std::chrono::steady_clock::now();
  if (Status s = session_.set_prompt(tokens, {}); !s) return fail(s.error());
  const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
  return ns.count();
}

Result<PrefillRow> PrefillTimer::measure(const BenchTest& test, size_t n_repetitions) {
  const engine::Engine& engine = session_.engine();
  PrefillRow result;
  result.row.test = test;
  result.row.time = bench_time();
  result.row.bytes_per_token = bench_bytes_per_token(engine, test);
  result.multiply_adds_per_token = multiply_adds_of(engine, test);
  BenchTest brief = test;
  brief.n_prompt = std::min<size_t>(test.n_prompt, 32);
  if (const Result<double> ns = run(brief); !ns) return fail(ns.error());
  for (size_t i = 0; i < n_repetitions; ++i) {
    const engine::ExpertReport before = engine::expert_report(engine);
    const Result<double> ns = run(test);
    if (!ns) return fail(ns.error());
    result.row.experts.add(engine::expert_report(engine).since(before));
    result.row.samples_ns.push_back(*ns);
  }
  return result;
}

std::vector<ReportColumn> prefill_columns() {
  constexpr auto kLeft = ReportColumn::Align::kLeft;
  return {{"model", 26, kLeft}, {"backend", 9, kLeft}, {"threads", 7}, {"test", 16},
          {"t/s", 20},          {"us/token", 9},       {"Gmac/s", 9},  {"MB/token", 9}};
}

ReportRow prefill_report_row(const BenchSetting& setting, const std::string& fill,
                             const PrefillRow& row) {
  const std::vector<double> speeds = row.row.tokens_per_s();
  const double spread =
      speeds.empty() ? 0 : (std::ranges::max(speeds) - std::ranges::min(speeds)) / 2;
  const double speed = row.tokens_per_s();
  const double us = speed > 0 ? 1e6 / speed : 0;
  nlohmann::ordered_json json = setting_json(setting, row.row);
  json["start_position"] = row.row.test.n_depth;
  json["fill_state"] = fill;
  json["tokens_per_s"] = speed;
  json["us_per_token"] = us;
  json["multiply_adds_per_token"] = row.multiply_adds_per_token;
  json["giga_multiply_adds_per_s"] = row.giga_multiply_adds_per_s();
  json["measured_bandwidth_gbps"] = setting.bandwidth_gbps;
  add_expert_figures(json, setting, row.row);
  return {
      .cells = {setting.model_type, setting.backend, fmt::format("{}", setting.n_threads),
                row.row.test.name(), fmt::format("{:.2f} \u00b1 {:.2f}", speed, spread),
                fmt::format("{:.1f}", us), fmt::format("{:.1f}", row.giga_multiply_adds_per_s()),
                fmt::format("{:.2f}", row.row.bytes_per_token * 1e-6)},
      .json = std::move(json),
      .note = expert_note(setting, row.row)};
}

}  // namespace godwit::apps
