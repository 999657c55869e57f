// `godwit check`: a backend against the double-precision oracle, step by step.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_check_command(CLI::App& app);

}  // namespace godwit::apps
