// `godwit devices`: what Godwit could compute on, and with what. --list-devices on the other
// commands is the short form of the same.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_devices_command(CLI::App& app);
// --list-devices: prints one line a device and ends the program, whatever else is missing.
void add_list_devices_flag(CLI::App& command);

}  // namespace godwit::apps
