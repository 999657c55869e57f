#include "apps/bench/prefill.h"

#include <algorithm>
#include <memory>

#include "apps/bench/bench_plots.h"
#include "apps/bench/bench_setting.h"
#include "apps/bench/depth_options.h"
#include "apps/bench/prefill_timer.h"
#include "apps/command.h"

namespace godwit::apps {
namespace {

struct PrefillOptions {
  DepthOptions depth;
  std::vector<size_t> prompts = {512};
};

// The longest prompt.
Result<size_t> longest(const PrefillOptions& options) {
  const size_t n = std::ranges::max(options.prompts);
  if (n > kMaxBenchTokens) return fail("-p {}: at most {}", n, kMaxBenchTokens);
  if (std::ranges::min(options.prompts) == 0) return fail("-p 0: a prompt has tokens");
  return n;
}

Status prefill(PrefillOptions& options, const CLI::App& command) {
  if (!options.depth.peer.program.empty()) {
    BenchLists tests;
    tests.prompts = options.prompts;
    tests.generations = {0};
    return bench_depth_beside_peer(options.depth, command, std::move(tests));
  }
  const Result<DepthChoices> choices = check_depth_options(options.depth);
  if (!choices) return fail(choices.error());
  const Result<size_t> n_prompt = longest(options);
  if (!n_prompt) return fail(n_prompt.error());
  const Result<std::unique_ptr<engine::Engine>> engine = load_for_depth(options.depth, *n_prompt);
  if (!engine) return fail(engine.error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  Result<StateFiller> filler = StateFiller::create(*session, choices->fill, options.depth.seed);
  if (!filler) return fail(std::move(filler).error());

  PrefillTimer timer(*session, *std::move(filler));
  if (options.depth.start_positions.empty()) {
    options.depth.start_positions = {timer.n_file_positions()};
  }
  const BenchSetting setting = bench_setting(**engine);
  Report report(choices->format, prefill_columns());
  std::vector<PrefillRow> rows;
  for (const size_t position : options.depth.start_positions) {
    for (const size_t n : options.prompts) {
      Result<PrefillRow> row = timer.measure({.n_prompt = n, .n_gen = 0, .n_depth = position},
                                             options.depth.n_repetitions);
      if (!row) return fail(std::move(row).error());
      show(report.add(prefill_report_row(setting, options.depth.fill, *row)));
      rows.push_back(*std::move(row));
    }
  }
  show(report.end(bench_footer(setting)));
  if (options.depth.plot.empty()) return {};
  return write_plot(options.depth.plot, prefill_plot(setting, rows));
}

}  // namespace

void add_bench_prefill_command(CLI::App& app) {
  auto options = std::make_shared<PrefillOptions>();
  CLI::App* command = app.add_subcommand(
      "bench-prefill", "Prompt speed at a depth that is not computed (also: bench prefill)");
  add_depth_options(*command, options->depth);
  command->add_option("-p,--n-prompt", options->prompts, "Prompt lengths")
      ->delimiter(',')
      ->capture_default_str();
  command->footer(
      "Gmac/s: 10^9 multiply-adds a second, of the matrices and of attention.\n"
      "Example:\n  godwit bench prefill -m smollm2 -p 128,512 --start-position 0,2048");
  command->callback([options, command] { finish(prefill(*options, *command)); });
}

}  // namespace godwit::apps
