// Diagnostics on stderr: one line each, off by default below `warn`. Libraries say here what a
// user may want to know (which kernel was chosen and why); answers and errors are values.
#pragma once

#include <string_view>

namespace godwit::log {

enum class Level { kDebug, kInfo, kWarn, kError };

void set_level(Level level);
void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);

}  // namespace godwit::log
