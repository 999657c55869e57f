// What all commands' flags have in common, on top of CLI11: llama.cpp's short forms of several
// letters (-ctk), upstream flags that mean nothing here (dropped with a warning), an answer to
// unknown flags that names the nearest, and an environment twin for every flag: GODWIT_<NAME>, then
// LLAMA_ARG_<NAME>, where NAME is a long form in capitals with underscores. A flag beats its twin,
// and the twin of whatever it excludes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct EnvironmentValue {
  std::string flag;      // "--ctx-size"
  std::string variable;  // "GODWIT_CTX_SIZE"
};

struct CommandLine {
  std::vector<std::string> arguments;  // as CLI11 takes them, in order
  std::vector<EnvironmentValue> from_environment;
};

// Of a repeated flag the last counts; list flags take one value each time; whole numbers are what
// they look like. Call once, when all commands are registered.
void settle_flags(CLI::App& app);

// Errors: a flag or command that is not known, with the nearest that is.
[[nodiscard]] Result<CommandLine> spell_out_flags(const CLI::App& app,
                                                  const std::vector<std::string>& arguments);

// Every way to write a flag: long forms, one letter, and llama.cpp's short forms of several.
[[nodiscard]] std::vector<std::string> flag_spellings(const CLI::Option& option);
// The variables that stand for it, the first that is set counting.
[[nodiscard]] std::vector<std::string> environment_twins(const CLI::Option& option);

// One line about what CLI11 refused, with the variable's name if the value came from there.
[[nodiscard]] std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error,
                                              const CommandLine& line);

}  // namespace godwit::apps
