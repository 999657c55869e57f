// `godwit perplexity`: how well a model predicts a text, and how far its predictions lie from
// those that a base model left in a file; with the flags and in the forms of llama-perplexity.
#pragma once

#include <CLI/CLI.hpp>

namespace godwit::apps {

void add_perplexity_command(CLI::App& app);

}  // namespace godwit::apps
