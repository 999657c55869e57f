// llama.cpp's spelling of flags on top of CLI11, which knows one-letter short forms only: -ctk and
// its like become long forms, upstream flags that mean nothing here are dropped with a warning, and
// an unknown flag is answered with the nearest known one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace godwit::apps {

[[nodiscard]] std::vector<std::string> spell_out_flags(std::vector<std::string> arguments);

[[nodiscard]] std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error,
                                              const std::vector<std::string>& arguments);

// The environment twin of a flag: GODWIT_<NAME> if set, else LLAMA_ARG_<NAME>.
void add_environment(CLI::Option* option, const std::string& name);

}  // namespace godwit::apps
