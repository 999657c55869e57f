#include "apps/bench/decode.h"

#include <algorithm>
#include <memory>

#include "apps/bench/bench_plots.h"
#include "apps/bench/bench_setting.h"
#include "apps/bench/decode_timer.h"
#include "apps/bench/depth_options.h"
#include "apps/bench/test_timer.h"
#include "apps/command.h"

namespace godwit::apps {
namespace {

struct DecodeOptions {
  DepthOptions depth;
  size_t n_tokens = 32;
};

// From position 0 to the deepest row, close enough for a smooth line.
std::vector<PositionBytes> bytes_along(const engine::Engine& engine,
                                       const std::vector<DecodeRow>& rows) {
  constexpr size_t kPoints = 64;
  size_t deepest = 0;
  for (const DecodeRow& row : rows) deepest = std::max(deepest, row.row.test.n_depth);
  std::vector<PositionBytes> along;
  for (size_t i = 0; i <= kPoints; ++i) {
    const size_t position = deepest * i / kPoints;
    const BenchTest step{.n_prompt = 0, .n_gen = 1, .n_depth = position};
    along.push_back({.position = position, .bytes_per_token = bench_bytes_per_token(engine, step)});
  }
  return along;
}

Status decode(DecodeOptions& options, const CLI::App& command) {
  if (!options.depth.peer.program.empty()) {
    BenchLists tests;
    tests.prompts = {0};
    tests.generations = {options.n_tokens};
    return bench_depth_beside_peer(options.depth, command, std::move(tests));
  }
  const Result<DepthChoices> choices = check_depth_options(options.depth);
  if (!choices) return fail(choices.error());
  const Result<std::unique_ptr<engine::Engine>> engine =
      load_for_depth(options.depth, options.n_tokens);
  if (!engine) return fail(engine.error());
  Result<engine::Session> session = (*engine)->new_session();
  if (!session) return fail(std::move(session).error());
  Result<DecodeTimer> timer = DecodeTimer::create(*session, choices->fill,
                                                  {.start_positions = options.depth.start_positions,
                                                   .n_tokens = options.n_tokens,
                                                   .n_repetitions = options.depth.n_repetitions,
                                                   .seed = options.depth.seed});
  if (!timer) return fail(std::move(timer).error());
  BenchSetting setting = bench_setting(**engine);
  Report report(choices->format, decode_columns());
  std::vector<DecodeRow> rows;
  for (const size_t position : timer->start_positions()) {
    Result<DecodeRow> row = timer->measure(position);
    if (!row) return fail(std::move(row).error());
    setting.bandwidth_gbps = row->bandwidth_gbps();
    show(report.add(decode_report_row(setting, options.depth.fill, *row)));
    rows.push_back(*std::move(row));
  }
  show(report.end(machine_line(setting)));
  if (options.depth.plot.empty()) return {};
  return write_plot(options.depth.plot, decode_plot(setting, rows, bytes_along(**engine, rows)));
}

}  // namespace

void add_bench_decode_command(CLI::App& app) {
  auto options = std::make_shared<DecodeOptions>();
  CLI::App* command = app.add_subcommand(
      "bench-decode", "Decode speed at a depth that is not computed (also: bench decode)");
  add_depth_options(*command, options->depth);
  command->add_option("-n,--n-gen", options->n_tokens, "Tokens of each repetition")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->footer(
      "Output matrix and sampling are in the time; the floor is reading the bytes of a token.\n"
      "Example:\n  godwit bench decode -m smollm2 --start-position 0,1024,4096");
  command->callback([options, command] { finish(decode(*options, *command)); });
}

}  // namespace godwit::apps
