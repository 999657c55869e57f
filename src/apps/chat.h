// `godwit chat`: a conversation in the terminal.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_chat_command(CLI::App& app);

}  // namespace godwit::apps
