#include "apps/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/command_tree.h"
#include "apps/pulled_models.h"

namespace godwit::apps {
namespace {

std::string model_names() {
  std::vector<std::string> names;
  for (const PulledModel& model : pulled_models()) names.emplace_back(model.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// "{bash,zsh,fish}" of a checked set of words, or nothing.
std::vector<std::string> choices_of(const FlagFacts& flag) {
  const size_t open = flag.value_name.find('{');
  const size_t close = flag.value_name.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  std::vector<std::string> words(1);
  for (const char c : flag.value_name.substr(open + 1, close - open - 1)) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Every spelling of the flags for which `wanted` holds, between blanks.
template <class F>
std::string spellings(const CommandFacts& command, F wanted) {
  std::string out = " ";
  for (const FlagFacts& flag : command.flags) {
    if (!wanted(flag)) continue;
    for (const std::string& name : flag.names) out += name + " ";
  }
  return out;
}

std::string bash_case(const CommandFacts& command) {
  const auto taking = [&](FlagValue value) {
    return spellings(command, [&](const FlagFacts& flag) { return flag.value == value; });
  };
  std::string words;
  for (const FlagFacts& positional : command.positionals) {
    for (const std::string& word : choices_of(positional)) words += word + " ";
  }
  return fmt::format(
      "    {})\n      flags='{}'\n      numbers='{}'\n      texts='{}'\n      models='{}'\n"
      "      words='{}'\n      ;;\n",
      command.name, spellings(command, [](const FlagFacts&) { return true; }),
      taking(FlagValue::kNumber), taking(FlagValue::kText), taking(FlagValue::kModel), words);
}

// In single quotes for zsh and fish, where only backslash and quote mean something.
std::string zsh_quoted(const std::string& text, std::string_view special) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string zsh_action(const FlagFacts& flag) {
  switch (flag.value) {
    case FlagValue::kNone:
      return "";
    case FlagValue::kNumber:
      return ":number:";
    case FlagValue::kText:
      return ":value:_files";
    case FlagValue::kModel:
      return ":model:_godwit_models";
  }
  return "";
}

std::string zsh_case(const CommandFacts& command) {
  std::string out = fmt::format("    {})\n      _arguments", command.name);
  for (const FlagFacts& flag : command.flags) {
    for (const std::string& name : flag.names) {
      std::string quoted = zsh_quoted(flag.description, "[]:\\");
      quoted.insert(1, "*" + name + "[");
      quoted.insert(quoted.size() - 1, "]" + zsh_action(flag));
      out += " \\\n        " + quoted;
    }
  }
  for (const FlagFacts& positional : command.positionals) {
    const std::vector<std::string> words = choices_of(positional);
    const std::string action =
        words.empty() ? "_files" : fmt::format("({})", fmt::join(words, " "));
    out += fmt::format(" \\\n        ':{}:{}'", positional.names.front(), action);
  }
  return out + "\n      ;;\n";
}

std::string fish_flag(const std::string& condition, const FlagFacts& flag) {
  std::string out = fmt::format("complete -c godwit -n {}", fish_quoted(condition));
  for (const std::string& name : flag.names) {
    const bool is_long = name.starts_with("--");
    const char* kind = is_long ? "-l" : name.size() == 2 ? "-s" : "-o";
    out += fmt::format(" {} {}", kind, name.substr(is_long ? 2 : 1));
  }
  switch (flag.value) {
    case FlagValue::kNone:
      break;
    case FlagValue::kNumber:
      out += " -x";
      break;
    case FlagValue::kText:
      out += " -r -F";
      break;
    case FlagValue::kModel:
      out += " -r -F -a " + fish_quoted(model_names());
      break;
  }
  return out + " -d " + fish_quoted(flag.description) + "\n";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CommandFacts& command : command_facts(app)) {
    commands += command.name + " ";
    cases += bash_case(command);
  }
  const std::string own = spellings(program_facts(app), [](const FlagFacts&) { return true; });
  return fmt::format(
      R"(# bash completion for godwit; made by: godwit completions bash
_godwit() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local flags= numbers= texts= models= words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{}{}' -- "$current")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $models == *" $previous "* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W '{}' -- "$current"; compgen -f -- "$current")
  elif [[ $texts == *" $previous "* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  elif [[ $numbers != *" $previous "* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words$flags" -- "$current")
  fi
}}
complete -F _godwit godwit
)",
      commands, own, cases, model_names());
}

std::string zsh_completion(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CommandFacts& command : command_facts(app)) {
    std::string row = zsh_quoted(command.description, ":\\");
    row.insert(1, command.name + ":");
    commands += "    " + row + "\n";
    cases += zsh_case(command);
  }
  std::string own;
  for (const FlagFacts& flag : program_facts(app).flags) {
    for (const std::string& name : flag.names) {
      std::string row = zsh_quoted(flag.description, ":\\");
      row.insert(1, name + ":");
      commands += "    " + row + "\n";
    }
  }
  return fmt::format(
      R"(#compdef godwit
# zsh completion for godwit; made by: godwit completions zsh
_godwit_models() {{
  _alternative 'models:model:({})' 'files:file:_files'
}}
_godwit() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_godwit "$@"
)",
      model_names(), commands, cases);
}

std::string fish_completion(const CLI::App& app) {
  std::string out =
      "# fish completion for godwit; made by: godwit completions fish\n"
      "complete -c godwit -f\n";
  for (const FlagFacts& flag : program_facts(app).flags) {
    out += fish_flag("__fish_use_subcommand", flag);
  }
  for (const CommandFacts& command : command_facts(app)) {
    out += fmt::format("complete -c godwit -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish_quoted(command.description));
    const std::string seen = "__fish_seen_subcommand_from " + command.name;
    for (const FlagFacts& flag : command.flags) out += fish_flag(seen, flag);
    for (const FlagFacts& positional : command.positionals) {
      const std::vector<std::string> words = choices_of(positional);
      if (words.empty()) continue;
      out += fmt::format("complete -c godwit -n {} -a {}\n", fish_quoted(seen),
                         fish_quoted(fmt::format("{}", fmt::join(words, " "))));
    }
  }
  return out;
}

void add_completions_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completions", "Completion script for a shell");
  command->add_option("shell", *shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n  source <(godwit completions bash)\n"
      "  godwit completions fish > ~/.config/fish/completions/godwit.fish");
  command->callback([&app, shell] {
    const std::string script = *shell == "bash"  ? bash_completion(app)
                               : *shell == "zsh" ? zsh_completion(app)
                                                 : fish_completion(app);
    std::fwrite(script.data(), 1, script.size(), stdout);
  });
}

}  // namespace godwit::apps
