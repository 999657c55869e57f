// llama.cpp's sampling flags, shared by run and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "engine/generate.h"

namespace godwit::apps {

struct SamplingOptions {
  sampling::SamplerSettings sampler;
  int64_t seed = -1;  // -1: from the system
  int64_t max_tokens = -1;
  bool ignore_eos = false;
  bool show_special = false;  // control tokens as text
  bool escape = true;         // \n and its like in the texts of flags stand for what they name
  std::vector<std::string> stops;
  std::vector<std::string> logit_bias;  // "ID+1.5", "ID-2"
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

// "15043+1.5". Errors: anything else.
[[nodiscard]] Result<std::pair<TokenId, float>> parse_logit_bias(std::string_view text);

// Errors: a malformed bias; whatever the sampler refuses without knowing the vocabulary, so that
// a wrong flag is answered before a model is loaded.
[[nodiscard]] Result<engine::GenerateSettings> generate_settings(const SamplingOptions& options);

// The text of a flag with its escapes replaced, if the options want that.
[[nodiscard]] std::string flag_text(const SamplingOptions& options, const std::string& text);

}  // namespace godwit::apps
