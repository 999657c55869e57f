#include "grader/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "grader/gates.h"
#include "grader/relative_error.h"
#include "program/traffic.h"

namespace godwit::grader {
namespace {

using nlohmann::json;

constexpr uint64_t kSeed = 11;

// Variables that are set for as long as this lives. Nothing else runs meanwhile.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::string>>& values)
      : values_(values) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }

 private:
  const std::vector<std::pair<std::string, std::string>>& values_;
};

struct Running {
  std::string name;
  std::unique_ptr<Subject> subject;
};

double microseconds_of_step(Subject& subject, TokenId token, uint64_t position) {
  const auto begin = std::chrono::steady_clock::now();
  subject.timed_step(token, position);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

std::vector<Running> make_variants(const TimingSettings& settings, const GradedModel& model,
                                   Twin& twin, uint64_t capacity, Timing& timing) {
  std::vector<Running> running;
  for (const TimedVariant& variant : settings.variants) {
    const Environment environment(variant.environment);
    Result<std::unique_ptr<Subject>> made =
        make_backend_subjects(variant.backend)->make(model, twin, capacity);
    if (!made) {
      timing.problems.push_back(fmt::format("{}: {}", variant.name, made.error().message));
      continue;
    }
    timing.descriptions.emplace_back(variant.name, (*made)->describe());
    running.push_back({variant.name, *std::move(made)});
  }
  return running;
}

void take_sample(Running& variant, TokenId token, uint64_t position, TimedRow& row) {
  row.wall_us.push_back(microseconds_of_step(*variant.subject, token, position));
  if (const std::optional<double> us = variant.subject->device_us()) row.device_us.push_back(*us);
}

void time_length(const TimingSettings& settings, const GradedModel& model, Twin& twin,
                 std::vector<Running>& running, uint64_t length, Timing& timing) {
  const TokenId token = graded_token(model, kSeed, 0);
  const uint64_t position = length - 1;
  std::vector<float> expected(model.shape.n_vocab);
  twin.step({.token = token, .position = position, .precision = TwinPrecision::kDouble}, expected,
            {});
  const program::Traffic traffic =
      program::traffic_of(model.program, {.position = position,
                                          .n_rows = 1,
                                          .k_type = TensorType::kBF16,
                                          .v_type = TensorType::kBF16});
  std::vector<TimedRow> rows;
  for (Running& variant : running) {
    std::vector<float> found(model.shape.n_vocab, std::nanf(""));
    variant.subject->step(token, position, found);
    const double error = relative_error<float, float>(found, expected);
    rows.push_back({.variant = variant.name,
                    .length = length,
                    .error = error,
                    .bytes = traffic.total(),
                    .wall_us = {},
                    .device_us = {}});
    for (uint64_t i = 0; i < settings.n_warm_up; ++i) variant.subject->timed_step(token, position);
  }
  for (uint64_t i = 0; i < settings.n_samples; ++i) {
    for (size_t k = 0; k < running.size(); ++k) {
      const size_t v = i % 2 == 0 ? k : running.size() - 1 - k;
      if (rows[v].error <= kDoubleTolerance) take_sample(running[v], token, position, rows[v]);
    }
  }
  for (TimedRow& row : rows) {
    if (!(row.error <= kDoubleTolerance)) {
      timing.problems.push_back(fmt::format("{} at {} positions: not timed, error {:.3g} against D",
                                            row.variant, length, row.error));
    }
    timing.rows.push_back(std::move(row));
  }
}

constexpr int kBudgetSamples = 5;
constexpr int kBudgetWarmUp = 2;
// A prefix that takes so much longer than a longer one was run by another executor.
constexpr double kImpossibleUs = -20.0;

// Of the first n steps; 0 where the subject does not tell.
double prefix_us(Subject& subject, TokenId token, uint64_t position, size_t n_steps) {
  std::vector<double> samples;
  for (int i = 0; i < kBudgetWarmUp + kBudgetSamples; ++i) {
    if (!subject.partial_step(token, position, n_steps)) return 0.0;
    const std::optional<double> us = subject.device_us();
    if (!us) return 0.0;
    if (i >= kBudgetWarmUp) samples.push_back(*us);
  }
  return median(std::move(samples));
}

void take_apart(const GradedModel& model, Running& running, uint64_t length, Timing& timing) {
  const TokenId token = graded_token(model, kSeed, 0);
  const program::TrafficInput input{.position = length - 1,
                                    .n_rows = 1,
                                    .k_type = TensorType::kBF16,
                                    .v_type = TensorType::kBF16};
  std::vector<StepBudget> kinds;
  double before = 0;
  for (size_t n = 1; n <= model.program.main.size(); ++n) {
    const program::Step& step = model.program.main[n - 1];
    const double us = prefix_us(*running.subject, token, length - 1, n);
    if (us == 0.0 || us - before < kImpossibleUs) {
      timing.problems.push_back(
          fmt::format("{} at {} positions: no time budget: {}", running.name, length,
                      us == 0.0 ? "it tells no times of steps" : "it runs parts otherwise"));
      return;
    }
    const std::string kind = step.label.substr(step.label.rfind('.') + 1);
    auto found = std::ranges::find(kinds, kind, &StepBudget::kind);
    if (found == kinds.end()) {
      kinds.push_back({.variant = running.name, .length = length, .kind = kind});
      found = kinds.end() - 1;
    }
    ++found->n_steps;
    found->bytes += program::traffic_of(step.operation, input).total();
    found->us += us - before;
    before = us;
  }
  timing.budgets.insert(timing.budgets.end(), kinds.begin(), kinds.end());
}

// What the table and the JSON call the time of a token.
double token_us(const TimedRow& row) {
  return median(row.device_us.empty() ? row.wall_us : row.device_us);
}

json row_json(const TimedRow& row) {
  return {{"variant", row.variant},
          {"positions", row.length},
          {"bytes", row.bytes},
          {"error", std::isfinite(row.error) ? json(row.error) : json(nullptr)},
          {"us_per_token", row.wall_us.empty() ? json(nullptr) : json(token_us(row))},
          {"wall_us", row.wall_us},
          {"device_us", row.device_us}};
}

}  // namespace

double median(std::vector<double> samples) {
  if (samples.empty()) return 0.0;
  std::ranges::sort(samples);
  const size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

Result<Timing> time_variants(const TimingSettings& settings) {
  const uint64_t capacity = *std::ranges::max_element(settings.lengths);
  const GradedModel model = make_random_model(settings.shape, kSeed, capacity);
  Result<std::unique_ptr<Twin>> twin = make_twin(model, settings.place, capacity);
  if (!twin) return fail(std::move(twin).error());
  Timing timing;
  std::vector<Running> running = make_variants(settings, model, **twin, capacity, timing);
  for (const uint64_t length : settings.lengths) {
    time_length(settings, model, **twin, running, length, timing);
  }
  for (const uint64_t length : settings.budget_lengths) {
    for (Running& variant : running) take_apart(model, variant, length, timing);
  }
  for (const Running& variant : running) {
    if (variant.subject->failure().empty()) continue;
    timing.problems.push_back(fmt::format("{}: {}", variant.name, variant.subject->failure()));
  }
  return timing;
}

std::string timing_json(const TimingSettings& settings, const Timing& timing,
                        const std::vector<double>& bandwidth_gbs) {
  json rows = json::array();
  for (const TimedRow& row : timing.rows) rows.push_back(row_json(row));
  json budgets = json::array();
  for (const StepBudget& b : timing.budgets) {
    budgets.push_back({{"variant", b.variant},
                       {"positions", b.length},
                       {"kind", b.kind},
                       {"steps", b.n_steps},
                       {"bytes", b.bytes},
                       {"us", b.us}});
  }
  json descriptions = json::object();
  for (const auto& [variant, text] : timing.descriptions) descriptions[variant] = text;
  const json out = {{"model", settings.shape.name},
                    {"read_bandwidth_gbs", median(bandwidth_gbs)},
                    {"read_bandwidth_samples", bandwidth_gbs},
                    {"descriptions", descriptions},
                    {"problems", timing.problems},
                    {"budgets", budgets},
                    {"rows", rows}};
  return out.dump(1, ' ', false, json::error_handler_t::replace);
}

std::string timing_text(const Timing& timing, const std::vector<double>& bandwidth_gbs) {
  const double gbs = median(bandwidth_gbs);
  std::string out = fmt::format(
      "read bandwidth {:.0f} GB/s\n{:<14} {:>9} {:>10} {:>18} {:>10} {:>9} {:>8}\n", gbs, "variant",
      "positions", "us/token", "spread", "wall us", "floor us", "of floor");
  for (const TimedRow& row : timing.rows) {
    if (row.wall_us.empty()) continue;
    const std::vector<double>& samples = row.device_us.empty() ? row.wall_us : row.device_us;
    const auto [low, high] = std::ranges::minmax_element(samples);
    const double floor_us = gbs > 0 ? static_cast<double>(row.bytes) / gbs * 1e-3 : 0.0;
    out += fmt::format("{:<14} {:>9} {:>10.1f} {:>18} {:>10.1f} {:>9.1f} {:>7.1f}%\n", row.variant,
                       row.length, token_us(row), fmt::format("{:.1f} .. {:.1f}", *low, *high),
                       median(row.wall_us), floor_us, 100.0 * floor_us / token_us(row));
  }
  for (const StepBudget& b : timing.budgets) {
    const double floor_us = gbs > 0 ? static_cast<double>(b.bytes) / gbs * 1e-3 : 0.0;
    out += fmt::format("{} at {}: {:<9} x {:<3} {:>8.1f} us, floor {:>7.1f}\n", b.variant, b.length,
                       b.kind, b.n_steps, b.us, floor_us);
  }
  for (const std::string& problem : timing.problems) out += "problem: " + problem + "\n";
  return out;
}

}  // namespace godwit::grader
