// llama.cpp's sampling flags, shared by run and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/generate.h"

namespace godwit::apps {

struct SamplingOptions {
  sampling::SamplerSettings sampler;
  int64_t seed = -1;  // -1: from the system
  int64_t max_tokens = -1;
  bool ignore_eos = false;
  std::vector<std::string> stops;
  std::vector<std::string> logit_bias;  // "ID+1.5", "ID-2"
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

// Errors: a malformed bias.
[[nodiscard]] Result<engine::GenerateSettings> generate_settings(const SamplingOptions& options);

}  // namespace godwit::apps
