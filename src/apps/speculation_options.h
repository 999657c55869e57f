// llama.cpp's flags for speculation without a draft model, shared by run and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/speculate.h"

namespace godwit::apps {

struct SpeculationOptions {
  // Or one of upstream's ngram-*, all of which are prompt lookup here, or draft-mtp (also mtp).
  std::string type = "none";
  size_t max_draft = 15;
  size_t min_draft = 0;
  float min_probability = 0.0f;
};

void add_speculation_options(CLI::App& command, SpeculationOptions& options);

[[nodiscard]] engine::SpeculationSettings speculation_settings(const SpeculationOptions& options);
// An engine needs a row of logits for every token that is verified at once, and the head that
// drafts.
void make_room(const SpeculationOptions& options, engine::EngineSettings& settings);

}  // namespace godwit::apps
