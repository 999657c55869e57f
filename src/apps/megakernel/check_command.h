// `godwit check megakernel`, registered under one word: `check-megakernel`.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

inline constexpr const char* kCheckMegakernel = "check-megakernel";

void add_check_megakernel_command(CLI::App& app);

}  // namespace godwit::apps
