#include "apps/bench/depth_options.h"

#include <algorithm>

#include "apps/bench/bench_plan.h"
#include "apps/bench/plot.h"

namespace godwit::apps {

void add_depth_options(CLI::App& command, DepthOptions& options) {
  add_model_options(command, options.model);
  command
      .add_option("--start-position,-d,--n-depth", options.start_positions,
                  "Positions before the clock starts, as many tests; of a file: its last")
      ->delimiter(',')
      ->default_str("0");
  command
      .add_option("--fill-state", options.fill,
                  "What lies there: random, zeros, or a file that --state of run wrote")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of what is random")->capture_default_str();
  command.add_option("-r,--repetitions", options.n_repetitions, "Repetitions of each test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("-o,--output", options.format, "md, csv, json or jsonl")
      ->capture_default_str();
  command.add_flag_callback(
      "--json", [&options] { options.format = "json"; }, "The same as -o json");
  CLI::Option* plot =
      command.add_option("--plot", options.plot, "SVG file for a picture of it: speed by position");
  add_peer_options(command, options.peer);
  plot->excludes(command.get_option("--peer"));
}

Result<DepthChoices> check_depth_options(const DepthOptions& options) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  const Result<StateFill> fill = parse_state_fill(options.fill);
  if (!fill) return fail(fill.error());
  if (Status s = check_plot_path(options.plot); !s) return fail(s.error());
  return DepthChoices{.format = *format, .fill = *fill};
}

Result<std::unique_ptr<engine::Engine>> load_for_depth(const DepthOptions& options,
                                                       size_t n_tokens) {
  ModelOptions model = options.model;
  uint64_t deepest = 0;
  for (const size_t position : options.start_positions) {
    if (position > kMaxBenchTokens) {
      return fail("--start-position {}: at most {}", position, kMaxBenchTokens);
    }
    deepest = std::max<uint64_t>(deepest, position);
  }
  // A file may hold any number of positions: then the context stays the model's own.
  const bool known =
      !options.start_positions.empty() || options.fill == "random" || options.fill == "zeros";
  if (model.n_context == 0 && known) {
    model.n_context = std::max<uint64_t>(deepest + n_tokens + 1, kLeastFillContext);
  }
  return load_engine(model);
}

Status bench_depth_beside_peer(const DepthOptions& options, const CLI::App& command,
                               BenchLists tests) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  Result<PeerPlan> plan = peer_plan(options.peer, options.model, command);
  if (!plan) return fail(std::move(plan).error());
  const std::string& name = command.get_name();  // "bench-decode"
  plan->words = {"bench", name.substr(name.find('-') + 1)};
  plan->lists = std::move(tests);
  plan->lists.depths =
      options.start_positions.empty() ? std::vector<size_t>{0} : options.start_positions;
  plan->n_rounds = options.n_repetitions;
  return bench_beside_peer({*std::move(plan)}, *format);
}

}  // namespace godwit::apps
