// `godwit bench prefill`, registered under one word: `bench-prefill`.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_bench_prefill_command(CLI::App& app);

}  // namespace godwit::apps
