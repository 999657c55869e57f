#include "apps/bench/decode_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "apps/bench/bench_setting.h"
#include "apps/bench/test_timer.h"
#include "base/median.h"

namespace godwit::apps {
namespace {

using Clock = std::chrono::steady_clock;

// Steps before the first one that counts: caches, page tables and clocks settle.
constexpr size_t kWarmUpTokens = 2;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

double DecodeRow::token_us(double quantile) const {
  std::vector<double> all;
  for (const DecodeRepetition& r : repetitions) {
    all.insert(all.end(), r.token_us.begin(), r.token_us.end());
  }
  return quantile_of(std::move(all), quantile);
}

double DecodeRow::tokens_per_s() const {
  const double us = token_us(0.5);
  return us > 0 ? 1e6 / us : 0;
}

double DecodeRow::gbps() const { return row.bytes_per_token * tokens_per_s() * 1e-9; }

double DecodeRow::bandwidth_gbps() const {
  std::vector<double> all;
  for (const DecodeRepetition& r : repetitions) all.push_back(r.bandwidth_gbps);
  return median_of(std::move(all));
}

double DecodeRow::floor_us() const {
  const double gbps = bandwidth_gbps();
  return gbps > 0 ? row.bytes_per_token / gbps * 1e-3 : 0;
}

double DecodeRow::percent_of_floor() const {
  std::vector<double> shares;
  for (const DecodeRepetition& r : repetitions) {
    const double us = median_of(r.token_us);
    if (r.bandwidth_gbps <= 0 || us <= 0) continue;
    shares.push_back(100 * row.bytes_per_token / r.bandwidth_gbps * 1e-3 / us);
  }
  return median_of(std::move(shares));
}

DecodeTimer::DecodeTimer(engine::Session& session, DecodeTimerSettings settings, StateFiller filler,
                         sampling::Sampler sampler)
    : session_(session),
      settings_(std::move(settings)),
      filler_(std::move(filler)),
      sampler_(std::move(sampler)) {}

Result<DecodeTimer> DecodeTimer::create(engine::Session& session, const StateFill& fill,
                                        const DecodeTimerSettings& settings) {
  sampling::SamplerSettings chain;
  chain.seed = settings.seed;
  Result<sampling::Sampler> sampler =
      sampling::Sampler::create(chain, &session.engine().tokenizer());
  if (!sampler) return fail(std::move(sampler).error());
  Result<StateFiller> filler = StateFiller::create(session, fill, settings.seed);
  if (!filler) return fail(std::move(filler).error());
  return DecodeTimer(session, settings, *std::move(filler), *std::move(sampler));
}

std::vector<size_t> DecodeTimer::start_positions() const {
  if (!settings_.start_positions.empty()) return settings_.start_positions;
  return {filler_.n_file_positions()};
}

// Microseconds of each step from a filled context on: the token's logits, and the next token.
Result<std::vector<double>> DecodeTimer::decode(size_t start_position, size_t n_tokens) {
  if (Status s = filler_.fill(session_, start_position); !s) return fail(s.error());
  TokenId token = bench_token(session_.engine(), start_position);
  std::vector<double> us;
  for (size_t i = 0; i < n_tokens; ++i) {
    const Clock::time_point start = Clock::now();
    const Status s =
        session_.tokens().empty() ? session_.set_prompt({&token, 1}, {}) : session_.append(token);
    if (!s) return fail(s.error());
    token = sampler_.sample(session_.logits(), session_.tokens(),
                            {static_cast<int32_t>(session_.tokens().size())});
    us.push_back(us_since(start));
  }
  return us;
}

Result<DecodeRow> DecodeTimer::measure(size_t start_position) {
  const engine::Engine& engine = session_.engine();
  DecodeRow result;
  result.row.test = {.n_prompt = 0, .n_gen = settings_.n_tokens, .n_depth = start_position};
  result.row.time = bench_time();
  result.row.bytes_per_token = bench_bytes_per_token(engine, result.row.test);
  const size_t n_warm_up = std::min(kWarmUpTokens, settings_.n_tokens);
  if (const auto warm = decode(start_position, n_warm_up); !warm) return fail(warm.error());
  for (size_t i = 0; i < settings_.n_repetitions; ++i) {
    const double gbps = engine::read_bandwidth_gbps(engine.backend(), engine.settings().n_threads);
    const engine::ExpertReport before = engine::expert_report(engine);
    Result<std::vector<double>> us = decode(start_position, settings_.n_tokens);
    if (!us) return fail(std::move(us).error());
    result.row.experts.add(engine::expert_report(engine).since(before));
    result.row.samples_ns.push_back(1e3 * std::accumulate(us->begin(), us->end(), 0.0));
    result.repetitions.push_back({.token_us = *std::move(us), .bandwidth_gbps = gbps});
  }
  return result;
}

std::vector<ReportColumn> decode_columns() {
  constexpr auto kLeft = ReportColumn::Align::kLeft;
  return {{"model", 26, kLeft}, {"backend", 9, kLeft}, {"threads", 7},
          {"test", 16},         {"us/token", 16},      {"t/s", 9},
          {"MB/token", 9},      {"GB/s", 7},           {"GB/s read", 9},
          {"% floor", 7}};
}

ReportRow decode_report_row(const BenchSetting& setting, const std::string& fill,
                            const DecodeRow& row) {
  nlohmann::ordered_json json = setting_json(setting, row.row);
  json["start_position"] = row.row.test.n_depth;
  json["fill_state"] = fill;
  json["us_per_token"] = row.token_us(0.5);
  json["us_per_token_p10"] = row.token_us(0.1);
  json["us_per_token_p90"] = row.token_us(0.9);
  json["tokens_per_s"] = row.tokens_per_s();
  json["gbps"] = row.gbps();
  json["measured_bandwidth_gbps"] = row.bandwidth_gbps();
  json["floor_us"] = row.floor_us();
  json["percent_of_floor"] = row.percent_of_floor();
  add_expert_figures(json, setting, row.row);
  const double spread = (row.token_us(0.9) - row.token_us(0.1)) / 2;
  return {
      .cells = {setting.model_type, setting.backend, fmt::format("{}", setting.n_threads),
                row.row.test.name(), fmt::format("{:.1f} \u00b1 {:.1f}", row.token_us(0.5), spread),
                fmt::format("{:.2f}", row.tokens_per_s()),
                fmt::format("{:.2f}", row.row.bytes_per_token * 1e-6),
                fmt::format("{:.2f}", row.gbps()), fmt::format("{:.2f}", row.bandwidth_gbps()),
                fmt::format("{:.1f}", row.percent_of_floor())},
      .json = std::move(json),
      .note = expert_note(setting, row.row)};
}

}  // namespace godwit::apps
