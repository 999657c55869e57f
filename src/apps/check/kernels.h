// `godwit check kernels`: every kernel of the cpu backend that this processor can run against
// double precision and against itself (testing/kernels). Registered under one word, check-kernels.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

inline constexpr const char* kCheckKernels = "check-kernels";

void add_check_kernels_command(CLI::App& app);

}  // namespace godwit::apps
