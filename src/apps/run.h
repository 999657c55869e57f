// `godwit run`: one prompt, one answer, with a stats line.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_run_command(CLI::App& app);

}  // namespace godwit::apps
