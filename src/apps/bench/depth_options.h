// What `bench decode` and `bench prefill` have in common: where to begin, and what lies before.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/peer.h"
#include "apps/bench/report.h"
#include "apps/bench/state_fill.h"
#include "apps/model_options.h"
#include "base/result.h"

namespace godwit::apps {

struct DepthOptions {
  ModelOptions model;
  std::vector<size_t> start_positions;
  std::string fill = "random";
  uint64_t seed = 1;
  size_t n_repetitions = 3;
  std::string format = "md";
  std::string plot;  // a file; "": none
  PeerOptions peer;
};

// -m and its like, --start-position, --fill-state, --seed, -r, -o, --json, --plot, --peer.
void add_depth_options(CLI::App& command, DepthOptions& options);

// What the words of the options say.
struct DepthChoices {
  BenchFormat format = BenchFormat::kMarkdown;
  StateFill fill;
};

// Before anything is loaded. Errors: an unknown format or fill, a plot that has no folder.
[[nodiscard]] Result<DepthChoices> check_depth_options(const DepthOptions& options);

// Loads with a context that holds n_tokens after every start position, unless -c says otherwise.
// Errors: a position beyond all reason.
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> load_for_depth(const DepthOptions& options,
                                                                     size_t n_tokens);

// The tests in turn with the peer; `tests` is what llama-bench is to do but for the depths.
[[nodiscard]] Status bench_depth_beside_peer(const DepthOptions& options, const CLI::App& command,
                                             BenchLists tests);

}  // namespace godwit::apps
