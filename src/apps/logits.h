// `godwit logits`: raw logits for scripts that compare engines (tests/conformance).
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_logits_command(CLI::App& app);

}  // namespace godwit::apps
