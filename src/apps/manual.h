// `godwit man`: the manual page, godwit(1), made from the commands as they are registered.
// `cmake --install` puts it where man looks.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace godwit::apps {

// `app` must outlive the command.
void add_man_command(CLI::App& app);

// In the man macros of troff.
[[nodiscard]] std::string manual_page(const CLI::App& app);

}  // namespace godwit::apps
