// `godwit bench decode`, registered under one word: `bench-decode`.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_bench_decode_command(CLI::App& app);

}  // namespace godwit::apps
