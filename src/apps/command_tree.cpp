#include "apps/command_tree.h"

#include <algorithm>

#include "apps/flags.h"

namespace godwit::apps {
namespace {

FlagValue value_of(const CLI::Option& option) {
  if (option.get_items_expected_min() == 0) return FlagValue::kNone;
  if (option.check_lname("model")) return FlagValue::kModel;
  const std::string type = option.get_type_name();
  const bool number = type.starts_with("UINT") || type.starts_with("INT") ||
                      type.starts_with("FLOAT") || type.starts_with("NUMBER");
  return number ? FlagValue::kNumber : FlagValue::kText;
}

std::string one_line_of(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

FlagFacts facts_of(const CLI::Option& option) {
  return {.names = flag_spellings(option),
          .value = value_of(option),
          .value_name = option.get_type_name(),
          .description = one_line_of(option.get_description()),
          .default_text = option.get_default_str(),
          .required = option.get_required(),
          .variables = environment_twins(option)};
}

CommandFacts facts_of(const CLI::App& command) {
  CommandFacts facts{.name = command.get_name(),
                     .description = one_line_of(command.get_description()),
                     .footer = command.get_footer(),
                     .flags = {},
                     .positionals = {}};
  for (const CLI::Option* option : command.get_options()) {
    FlagFacts flag = facts_of(*option);
    if (option->nonpositional()) {
      if (option == command.get_help_ptr()) flag.variables.clear();
      facts.flags.push_back(std::move(flag));
    } else {
      flag.names = {option->get_name(true)};
      flag.variables.clear();
      facts.positionals.push_back(std::move(flag));
    }
  }
  return facts;
}

}  // namespace

CommandFacts program_facts(const CLI::App& app) {
  CommandFacts facts = facts_of(app);
  for (FlagFacts& flag : facts.flags) flag.variables.clear();
  return facts;
}

std::vector<CommandFacts> command_facts(const CLI::App& app) {
  std::vector<CommandFacts> all;
  for (const CLI::App* command : app.get_subcommands({})) all.push_back(facts_of(*command));
  return all;
}

}  // namespace godwit::apps
