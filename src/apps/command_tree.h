// The commands and flags of the program as plain data, read off the registered CLI11 tree: what
// completions and the manual are made of, so that neither has a list of its own to go stale.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace godwit::apps {

// What may follow a flag.
enum class FlagValue { kNone, kNumber, kText, kModel };

struct FlagFacts {
  std::vector<std::string> names;  // "--ctx-size", "-c", and short forms as -ctk
  FlagValue value = FlagValue::kNone;
  std::string value_name;   // "UINT", "TEXT:{bash,zsh,fish}"
  std::string description;  // one line
  std::string default_text;
  bool required = false;
  std::vector<std::string> variables;  // environment twins
};

struct CommandFacts {
  std::string name;
  std::string description;
  std::string footer;  // examples
  std::vector<FlagFacts> flags;
  std::vector<FlagFacts> positionals;  // names holds the one name
};

// Of the program itself: its own flags, and no commands.
[[nodiscard]] CommandFacts program_facts(const CLI::App& app);
[[nodiscard]] std::vector<CommandFacts> command_facts(const CLI::App& app);

}  // namespace godwit::apps
