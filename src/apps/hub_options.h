// The flags that name a model of a Hugging Face repository, and fetching it with what a user sees
// of that: a bar or lines on stderr, remarks, Ctrl-C. Used by every command that opens a model, and
// by pull.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "hub/fetch.h"

namespace godwit::apps {

struct HubOptions {
  std::string repo;  // ORG/NAME[:QUANT]; empty: none named
  std::string file;
  hub::HubFlags flags;
};

// --hf-repo (-hf), --hf-file (-hff), --hf-token (-hft), --offline.
void add_hub_options(CLI::App& command, HubOptions& options);

// Ctrl-C ends the program with 130 after a remark that what arrived is kept.
[[nodiscard]] Result<hub::FetchedModel> fetch_from_hub(const HubOptions& options);

}  // namespace godwit::apps
