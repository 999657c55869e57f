// `godwit bench kernel`, registered under one word: `bench-kernel`.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_bench_kernel_command(CLI::App& app);

}  // namespace godwit::apps
