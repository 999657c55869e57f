// The system message of `run` and `chat`: from a flag or from a file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/sampling_options.h"
#include "base/result.h"

namespace godwit::apps {

struct SystemPrompt {
  std::string text;
  std::string file;
};

// --system-prompt (-sys), --system-prompt-file (-sysf).
void add_system_prompt_options(CLI::App& command, SystemPrompt& prompt);

// "" for none. Errors: a file that cannot be read.
[[nodiscard]] Result<std::string> system_prompt_text(const SystemPrompt& prompt,
                                                     const SamplingOptions& sampling);

}  // namespace godwit::apps
