// `godwit completions bash|zsh|fish`: a script for that shell to load, made from the commands as
// they are registered. `cmake --install` puts all three where shells look.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"

namespace godwit::apps {

// `app` must outlive the command.
void add_completions_command(CLI::App& app);

[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace godwit::apps
