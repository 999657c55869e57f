// From what a user writes after -m or -hf to a file: an existing path, the name of a pulled model,
// or a file of a repository, which is fetched. Called by every subcommand that opens a model, and
// by pull for the place to put one.
#pragma once

#include <filesystem>
#include <string_view>

#include "apps/hub_options.h"
#include "base/result.h"

namespace godwit::apps {

// $XDG_CACHE_HOME/godwit/models, or the same below ~/.cache. Not created here.
[[nodiscard]] std::filesystem::path model_directory();

// Errors name both possibilities, and the command that would fetch a known but absent model.
[[nodiscard]] Result<std::filesystem::path> resolve_model(std::string_view model);

// The repository's model if one is named, otherwise resolve_model().
[[nodiscard]] Result<std::filesystem::path> find_model(std::string_view model,
                                                       const HubOptions& hub);

}  // namespace godwit::apps
