// What every subcommand of `godwit` has in common. Each lives in apps/<name>.h and .cpp and offers
// `void add_<name>_command(CLI::App& app)`, which registers its subcommand: options, help text with
// an example in the footer, and a callback that does the work and ends with finish(). CLI11 is
// included by apps/*.cpp only; main.cpp adds all commands and turns what they throw into exit
// codes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace godwit::apps {

// The text with control characters spelled out and its middle left out if it is very long, so that
// a name from a file or a flag can neither break a message in two nor steer the terminal.
[[nodiscard]] std::string one_line(std::string_view text);

// Ends a command's callback: returns on success; otherwise prints "error: <message>" to stderr and
// throws CLI::RuntimeError(1), which main.cpp catches.
void finish(const Status& status);

// The value of a result, or finish() with its error.
template <class T>
[[nodiscard]] T value_or_finish(Result<T> result) {
  if (!result) finish(fail(std::move(result).error()));
  return *std::move(result);
}

}  // namespace godwit::apps
