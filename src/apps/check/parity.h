// `godwit check parity`: a whole model on a backend, against itself and against the reference
// (testing/parity). Registered under one word, check-parity.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

inline constexpr const char* kCheckParity = "check-parity";

void add_check_parity_command(CLI::App& app);

}  // namespace godwit::apps
