#include "apps/megakernel/time_decode.h"

#include <algorithm>
#include <cstdio>

#include "apps/megakernel/named_shape.h"
#include "grader/bandwidth.h"
#include "grader/timing.h"

namespace godwit::apps {
namespace {

constexpr const char* kExecutor = "GODWIT_CUDA_EXECUTOR";
constexpr const char* kOverlap = "GODWIT_CUDA_OVERLAP";

Result<grader::TimedVariant> variant_of(const std::string& name) {
  if (name == "persistent") {
    return grader::TimedVariant{name, "cuda", {{kExecutor, "persistent"}}};
  }
  if (name == "stepwise-pdl") {
    return grader::TimedVariant{
        name, "cuda", {{kExecutor, "stepwise"}, {kOverlap, "programmatic"}}};
  }
  if (name == "stepwise") {
    return grader::TimedVariant{name, "cuda", {{kExecutor, "stepwise"}, {kOverlap, "none"}}};
  }
  return fail("variant '{}' is not known; there are persistent, stepwise-pdl, stepwise", name);
}

}  // namespace

void add_time_options(CLI::App& command, TimeOptions& options) {
  command.add_option("--shape", options.shape, "Model shape")->capture_default_str();
  command.add_option("--positions", options.positions, "Lengths of history, the newest included")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--budget", options.budget_positions, "Those to take apart step by step")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--variants", options.variants, "Executors")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--samples", options.n_samples, "Tokens timed at each")
      ->check(CLI::Range(3, 100000))
      ->capture_default_str();
  command.add_option("--json-out", options.json, "File for samples and medians as JSON");
}

Status time_decode(const TimeOptions& options) {
  const Result<grader::GradedShape> shape = named_shape(options.shape);
  if (!shape) return fail(shape.error());
  grader::TimingSettings settings{.shape = *shape,
                                  .lengths = options.positions,
                                  .variants = {},
                                  .budget_lengths = {},
                                  .n_samples = options.n_samples};
  for (const std::string& name : options.variants) {
    Result<grader::TimedVariant> variant = variant_of(name);
    if (!variant) return fail(std::move(variant).error());
    settings.variants.push_back(*std::move(variant));
  }
  for (const uint64_t length : options.budget_positions) {
    const bool timed = std::ranges::find(options.positions, length) != options.positions.end();
    if (timed) settings.budget_lengths.push_back(length);
  }
  const grader::Bandwidth bandwidth = grader::measure_device_bandwidth();
  if (!bandwidth.problem.empty()) return fail("read bandwidth: {}", bandwidth.problem);
  const Result<grader::Timing> timing = grader::time_variants(settings);
  if (!timing) return fail(timing.error());
  std::printf("%s", grader::timing_text(*timing, bandwidth.samples_gbs).c_str());
  if (!options.json.empty()) {
    const Status s =
        write_text(options.json, grader::timing_json(settings, *timing, bandwidth.samples_gbs));
    if (!s) return s;
  }
  for (const grader::TimedRow& row : timing->rows) {
    if (!row.wall_us.empty()) return {};
  }
  return fail("nothing could be timed");
}

}  // namespace godwit::apps
