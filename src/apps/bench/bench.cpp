#include "apps/bench/bench.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "apps/bench/bench_plan.h"
#include "apps/bench/bench_report.h"
#include "apps/bench/bench_setting.h"
#include "apps/bench/peer.h"
#include "apps/bench/test_timer.h"
#include "apps/command.h"
#include "apps/model_options.h"
#include "apps/stats.h"
#include "os/memory.h"

namespace godwit::apps {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::vector<std::string> models;
  BenchLists lists;
  size_t repetitions = 5;
  std::string format = "md";
  bool progress = false;
  std::string route_trace;
  PeerOptions peer;
};

// The rows of one model, on stdout as they are measured; returns what they share.
Result<BenchSetting> bench_model(const BenchOptions& options, const std::vector<BenchTest>& tests,
                                 Report& report) {
  Result<engine::EngineSettings> settings = engine_settings(options.model);
  if (!settings) return fail(std::move(settings).error());
  settings->route_trace = options.route_trace;
  const Result<std::unique_ptr<engine::Engine>> engine = load_engine(*settings);
  if (!engine) return fail(engine.error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  BenchSetting setting = bench_setting(**engine);
  restart_peak_rss();  // the bandwidth was measured in a buffer of its own
  TestTimer timer(**engine, std::move(*session));
  // Who sees the rows come needs no more; a terminal beside a redirected table is told.
  const bool tells = options.progress || (isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0);
  for (const BenchTest& test : tests) {
    if (tells) std::fprintf(stderr, "%s: %s\n", setting.model_type.c_str(), test.name().c_str());
    const Result<BenchRow> row = timer.measure(test, options.repetitions);
    if (!row) return fail(row.error());
    ReportRow shown = bench_row(setting, *row);
    shown.json["peak_resident_bytes"] = peak_rss_bytes();
    shown.json["planned_resident_bytes"] = (*engine)->plan().resident();
    show(report.add(shown));
  }
  if (options.progress || isatty(STDERR_FILENO) != 0) {
    const std::string memory = resident_text({.peak_bytes = peak_rss_bytes(),
                                              .planned_bytes = (*engine)->plan().resident(),
                                              .n_positions = (*engine)->plan().n_context});
    std::fprintf(stderr, "%s: %s\n", setting.model_type.c_str(), memory.c_str());
  }
  return setting;
}

Status beside_peer(BenchOptions& options, const CLI::App& command, BenchFormat format) {
  std::vector<PeerPlan> plans;
  for (const std::string& model : options.models) {
    options.model.model = model;
    Result<PeerPlan> plan = peer_plan(options.peer, options.model, command);
    if (!plan) return fail(std::move(plan).error());
    plan->lists = options.lists;
    plan->n_rounds = options.repetitions;
    plans.push_back(*std::move(plan));
  }
  return bench_beside_peer(std::move(plans), format);
}

Status bench(BenchOptions& options, const CLI::App& command) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  const Result<std::vector<BenchTest>> tests = plan_bench(options.lists);
  if (!tests) return fail(tests.error());
  if (options.model.n_context == 0) {
    for (const BenchTest& test : *tests) {
      options.model.n_context = std::max<uint64_t>(options.model.n_context, test.n_positions());
    }
  }
  if (options.models.empty()) options.models.emplace_back();  // of a repository
  if (!options.peer.program.empty()) return beside_peer(options, command, *format);
  Report report(*format, bench_columns());
  BenchSetting last;
  for (const std::string& model : options.models) {
    options.model.model = model;
    Result<BenchSetting> setting = bench_model(options, *tests, report);
    if (!setting) return fail(std::move(setting).error());
    last = *std::move(setting);
  }
  show(report.end(bench_footer(last)));
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Prompt and decode speed, as llama-bench");
  add_model_options(*command, options->model);
  command->remove_option(command->get_option("--model"));
  CLI::Option* files =
      command->add_option("-m,--model", options->models, "GGUF files or names of pulled models")
          ->delimiter(',');
  command->get_option("--hf-repo")->excludes(files);
  const auto list = [&](const std::string& flags, auto& values, const std::string& help) {
    command->add_option(flags, values, help)->delimiter(',')->capture_default_str();
  };
  list("-p,--n-prompt", options->lists.prompts, "Prompt lengths; 0: none");
  list("-n,--n-gen", options->lists.generations, "Numbers of tokens to decode; 0: none");
  command->add_option("--prompt-gen", options->lists.prompt_gens,
                      "(-pg) Prompt and decode timed as one: PROMPT,GENERATED");
  list("-d,--n-depth", options->lists.depths, "Positions filled before the clock starts");
  command->add_option("-r,--repetitions", options->repetitions, "Repetitions of each test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("-o,--output", options->format, "md, csv, json or jsonl")
      ->capture_default_str();
  command->add_flag_callback(
      "--json", [options] { options->format = "json"; }, "The same as -o json");
  command->add_option("--route-trace", options->route_trace,
                      "Experts as a recorded trace chose them, not as the routers do; to compare "
                      "--expert-cache-mib at a known skew");
  command->add_flag("--progress", options->progress, "Say on stderr what is being measured");
  add_peer_options(*command, options->peer);
  command->footer(
      "Parts have commands of their own: bench kernel, bench decode, bench prefill.\n"
      "Example:\n  godwit bench -m smollm2 -p 512 -n 64 -d 0,4096 -r 3");
  command->callback([options, command] { finish(bench(*options, *command)); });
}

}  // namespace godwit::apps
