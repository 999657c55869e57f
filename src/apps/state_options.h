// The flags by which commands keep state: --state (a file that outlives the program) and
// --cache-ram (prefixes in memory, for conversations that turn back).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/prefix_tree.h"
#include "engine/session.h"

namespace godwit::apps {

struct StateOptions {
  std::string file;              // "": none
  int64_t cache_ram_mib = 1024;  // 0: none; negative: as much as there is
};

void add_state_option(CLI::App& command, StateOptions& options);
void add_cache_option(CLI::App& command, StateOptions& options);

// Takes up the timeline of the file, if there is one; returns its note. Errors: a file that is not
// a state of this model; it is left alone.
[[nodiscard]] Result<std::optional<std::string>> take_up_state(const StateOptions& options,
                                                               engine::Session& session);

// Bytes for a prefix tree: what was asked for, but no more than half of the memory that remains
// once the context is in use.
[[nodiscard]] uint64_t cache_budget_bytes(const StateOptions& options,
                                          const engine::Engine& engine);

}  // namespace godwit::apps
