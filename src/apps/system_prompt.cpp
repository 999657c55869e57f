#include "apps/system_prompt.h"

#include "apps/model_options.h"

namespace godwit::apps {

void add_system_prompt_options(CLI::App& command, SystemPrompt& prompt) {
  CLI::Option* text = command.add_option("--system-prompt", prompt.text, "(-sys) System message");
  command.add_option("--system-prompt-file", prompt.file, "(-sysf) File with the system message")
      ->excludes(text);
}

Result<std::string> system_prompt_text(const SystemPrompt& prompt,
                                       const SamplingOptions& sampling) {
  if (prompt.file.empty()) return flag_text(sampling, prompt.text);
  Result<std::string> text = read_text_file(prompt.file);
  if (text && text->ends_with('\n')) text->pop_back();  // as run's prompt file
  return text;
}

}  // namespace godwit::apps
