// `godwit tokenize`: the tokens of a text, with the flags and in the formats of llama-tokenize.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace godwit::apps {

void add_tokenize_command(CLI::App& app);

// The text with \n, \r, \t, \', \", \\ and \xHH replaced by what they stand for; any other
// backslash stays. As llama.cpp treats prompts on the command line.
[[nodiscard]] std::string without_escapes(std::string_view text);

}  // namespace godwit::apps
