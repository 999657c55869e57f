#include "apps/check/check.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/megakernel/check_command.h"
#include "apps/megakernel/check_megakernel.h"
#include "apps/model_options.h"
#include "backend/cpu/kernel_table.h"
#include "backend/registry.h"
#include "model/registry.h"
#include "os/topology.h"
#include "testing/steps/step_check.h"

namespace godwit::apps {
namespace {

using nlohmann::json;

struct CheckOptions {
  ModelOptions model;
  testing::StepCheckSettings steps;
  bool all = false;
  bool as_json = false;
};

// Values that share a scale when the CPU backend rounds activations.
size_t cpu_activation_block(TensorType type) {
  const cpu::MatVecKernel* kernel = cpu::find_matvec_kernel(type, Isa::kGeneric);
  return kernel == nullptr ? 0 : cpu::activation_block(kernel->activation);
}

size_t no_rounding(TensorType) { return 0; }

struct KindSummary {
  size_t n_compared = 0;
  testing::StepDifference worst;
};

// "blk.3.attend" -> "attend"
std::string kind_of(const std::string& label) { return label.substr(label.rfind('.') + 1); }

void print_summary(const std::map<std::string, KindSummary>& kinds) {
  std::printf("%-10s %9s  %-14s %s\n", "step", "compared", "worst / bound", "at");
  for (const auto& [kind, summary] : kinds) {
    std::printf("%-10s %9zu  %-14.4f %s, %s[%zu], position %d\n", kind.c_str(), summary.n_compared,
                summary.worst.ratio(), summary.worst.step.c_str(), summary.worst.buffer.c_str(),
                summary.worst.index, summary.worst.position);
  }
}

json number_or_null(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

void print_json(const std::map<std::string, KindSummary>& kinds, std::string_view subject,
                std::string_view oracle, const Status& verdict) {
  json steps = json::array();
  for (const auto& [kind, summary] : kinds) {
    const testing::StepDifference& worst = summary.worst;
    steps.push_back({{"kind", kind},
                     {"compared", summary.n_compared},
                     {"worst_ratio", number_or_null(worst.ratio())},
                     {"step", worst.step},
                     {"buffer", worst.buffer},
                     {"index", worst.index},
                     {"position", worst.position},
                     {"found", number_or_null(worst.found)},
                     {"expected", number_or_null(worst.expected)},
                     {"bound", number_or_null(worst.bound)}});
  }
  const json out = {{"subject", subject},
                    {"oracle", oracle},
                    {"holds", verdict.has_value()},
                    {"failure", verdict ? json(nullptr) : json(verdict.error().message)},
                    {"steps", steps}};
  std::printf("%s\n", out.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

Status describe_failure(const CheckOptions& options, const testing::StepDifference& d) {
  return fail(
      "step '{}' leaves its bound: {}[{}] at position {} is {:.9g}, the oracle says {:.9g}, "
      "difference {:.3g}, bound {:.3g}; repro: godwit check -m {} --backend {} -t {} --tokens {} "
      "--decode {} --seed {} --activation-bits {}{}",
      d.step, d.buffer, d.index, d.position, d.found, d.expected, std::abs(d.found - d.expected),
      d.bound, options.model.model, options.model.backend, options.model.n_threads,
      options.steps.n_prompt, options.steps.n_decode, options.steps.seed,
      options.model.activation_bits, options.model.no_repack ? " --no-repack" : "");
}

Status check(const CheckOptions& options) {
  const Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(settings.error());
  const Result<gguf::File> file = gguf::File::open(settings->model);
  if (!file) return fail(file.error());
  const Result<model::Model> model = model::build_model(*file, {.with_mtp = true});
  if (!model) return fail(model.error());
  const size_t n_threads = settings->n_threads != 0 ? settings->n_threads : available_cores();

  Result<std::unique_ptr<backend::Backend>> oracle =
      backend::make_backend("reference", {.n_threads = n_threads});
  if (!oracle) return fail(std::move(oracle).error());
  Result<std::unique_ptr<backend::Backend>> subject =
      backend::make_backend(settings->backend, {.n_threads = n_threads,
                                                .activation_bits = settings->activation_bits,
                                                .repack = settings->repack});
  if (!subject) return fail(std::move(subject).error());
  Status supported;
  program::for_each_step(model->program, [&](const program::Step& step) {
    if (!supported) return;
    supported = (*subject)->supports(step);
    if (!supported) {
      supported = fail(Error(supported.error()).with(fmt::format("step '{}'", step.label)));
    }
  });
  if (!supported) return supported;
  for (backend::Backend* backend : {oracle->get(), subject->get()}) {
    if (Status s = backend->load(model->program, model->weights, {}); !s) return fail(s.error());
  }

  ThreadPool pool(n_threads);
  const bool rounds = settings->backend == "cpu";
  const testing::StepContext context{
      .program = model->program,
      .weights = model->weights,
      .activation_block = rounds ? cpu_activation_block : no_rounding,
      .activation_planes =
          settings->activation_bits == backend::ActivationBits::kEight ? size_t{1} : size_t{2},
      .pool = pool};
  const std::string subject_name = (*subject)->describe();
  const std::string oracle_name = (*oracle)->describe();
  if (!options.as_json) std::printf("%s against %s\n", subject_name.c_str(), oracle_name.c_str());
  std::map<std::string, KindSummary> kinds;
  Status verdict;
  const Status ran = testing::check_steps(
      context, **oracle, **subject, options.steps, [&](const testing::StepDifference& d) {
        KindSummary& kind = kinds[kind_of(d.step)];
        if (kind.n_compared++ == 0 || d.ratio() > kind.worst.ratio()) kind.worst = d;
        if (d.ratio() <= 1.0) return true;
        if (verdict) verdict = describe_failure(options, d);
        return options.all;
      });
  if (!ran) return fail(ran.error());
  if (options.as_json) {
    print_json(kinds, subject_name, oracle_name, verdict);
    return verdict;
  }
  print_summary(kinds);
  if (verdict) std::printf("every step lies within its bound\n");
  return verdict;
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      app.add_subcommand("check", "Compare a backend with the double-precision oracle");
  add_model_options(*command, options->model);
  command->add_option("--tokens", options->steps.n_prompt, "Tokens of the prompt call")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--decode", options->steps.n_decode, "Single-token calls after it")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->add_option("--seed", options->steps.seed, "Seed of the token ids")
      ->capture_default_str();
  command->add_flag("--all", options->all, "Go on after the first difference");
  command->add_flag("--json", options->as_json,
                    "One JSON object: subject, oracle, holds, failure, steps");
  command->footer(
      "Every step runs on the oracle's inputs, so the first step named is the one that is wrong.\n"
      "Example:\n  GODWIT_ISA=avx2 godwit check -m smollm2");
  command->callback([options] { finish(check(*options)); });
}

void add_check_megakernel_command(CLI::App& app) {
  auto options = std::make_shared<MegakernelOptions>();
  CLI::App* command = app.add_subcommand(
      kCheckMegakernel, "Grade the decode path of a backend (also: check megakernel)");
  add_megakernel_options(*command, *options);
  command->footer(
      "The reference is a PyTorch script; docs/GRADER.md explains the table.\n"
      "Example:\n  godwit check megakernel --reference ref --plan\n"
      "  python3 tools/megakernel_reference.py ref\n"
      "  godwit check megakernel --reference ref");
  command->callback([options] { finish(check_megakernel(*options)); });
}

}  // namespace godwit::apps
