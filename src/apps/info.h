// `godwit info`: what a file holds, what it takes to run it, and how fast memory allows that.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_info_command(CLI::App& app);

}  // namespace godwit::apps
