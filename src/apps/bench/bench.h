// `godwit bench`: prompt and decode speed in llama-bench's flags and output, with the bytes moved
// and the share of measured bandwidth appended.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_bench_command(CLI::App& app);

}  // namespace godwit::apps
