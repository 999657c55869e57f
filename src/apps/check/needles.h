// `godwit check needles`: whether a model finds a passphrase hidden deep in real text, through its
// chat template, at lengths that nobody reads along. What it cannot see is a small error; what it
// cannot miss is a history that is lost, misplaced or rounded to nothing.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

inline constexpr const char* kCheckNeedles = "check-needles";

void add_check_needles_command(CLI::App& app);

}  // namespace godwit::apps
