#include "apps/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>

#include "apps/ignored_flags.h"
#include "base/log.h"

namespace godwit::apps {
namespace {

struct Spelling {
  std::string_view from;
  std::string_view to;
};

constexpr auto kSpellings = std::to_array<Spelling>({
    {"-cram", "--cache-ram"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-hf", "--hf-repo"},
    {"-hfr", "--hf-repo"},
    {"-hff", "--hf-file"},
    {"-hft", "--hf-token"},
    {"-no-cnv", "--no-conversation"},
    {"-nr", "--no-repack"},
    {"-sp", "--special"},
    {"-sys", "--system-prompt"},
    {"-sysf", "--system-prompt-file"},
    {"-ub", "--ubatch-size"},
    {"-pg", "--prompt-gen"},
});

// Twins whose upstream name is not made from the flag's.
constexpr auto kUpstreamTwins = std::to_array<Spelling>({{"ubatch-size", "LLAMA_ARG_UBATCH"}});

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view Row::* key, std::string_view wanted) {
  const auto found = std::ranges::find(rows, wanted, key);
  return found == rows.end() ? nullptr : &*found;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(const std::vector<std::string>& names, std::string_view wrong) {
  const auto best = std::ranges::min_element(names, {}, [&](const std::string& name) {
    return edit_distance(name, wrong.substr(0, 256));
  });
  return best == names.end() ? "--help" : *best;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name);
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (std::string& name : flag_spellings(*option)) names.push_back(std::move(name));
  }
  return names;
}

const CLI::App* find_command(const CLI::App& app, std::string_view name) {
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

std::string help_of(const CLI::App& app, const CLI::App& command) {
  return &command == &app ? "godwit --help" : fmt::format("godwit {} --help", command.get_name());
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

bool is_switch_value(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>({"on", "off", "auto", "0", "1", "0,1"});
  return std::ranges::find(kWords, text) != kWords.end();
}

// Whether `text` can follow an ignored flag as its value: "-1" can, "-p" cannot.
bool can_be_value(IgnoredValue value, std::string_view text) {
  switch (value) {
    case IgnoredValue::kNone:
      return false;
    case IgnoredValue::kSwitch:
      return is_switch_value(text);
    case IgnoredValue::kOne:
      return text.size() < 2 || text[0] != '-' || std::isdigit(static_cast<unsigned char>(text[1]));
  }
  return false;
}

// "-vv": flags without values; "-n64": a value attached to its letter, if it is a number. Words
// are not taken, so that "-np" is unknown and not "-n p".
bool is_cluster(const CLI::App& command, const std::string& argument) {
  if (argument.size() < 3 || argument[1] == '-') return false;
  const CLI::Option* first = find_option(command, argument.substr(0, 2));
  if (first == nullptr) return false;
  if (takes_value(*first)) return std::isdigit(static_cast<unsigned char>(argument[2])) != 0;
  return std::all_of(argument.begin() + 2, argument.end(), [&](char c) {
    const CLI::Option* option = find_option(command, std::string("-") + c);
    return option != nullptr && !takes_value(*option);
  });
}

// Walks the arguments of one command.
class Speller {
 public:
  explicit Speller(const CLI::App& command) : command_(command) {}

  Status spell(std::span<const std::string> arguments) {
    for (size_t i = 0; i < arguments.size();) {
      const std::string& argument = arguments[i];
      if (argument == "--") {
        out_.insert(out_.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.end());
        return {};
      }
      if (argument.size() < 2 || argument[0] != '-') {
        out_.push_back(argument);
        ++i;
        continue;
      }
      Result<size_t> used = flag(arguments.subspan(i));
      if (!used) return fail(std::move(used).error());
      i += *used;
    }
    return {};
  }

  [[nodiscard]] std::vector<std::string> take() { return std::move(out_); }
  [[nodiscard]] bool mentions(const CLI::Option* option) const {
    return mentioned_.contains(option);
  }

 private:
  // How many arguments the flag in front takes up.
  Result<size_t> flag(std::span<const std::string> arguments) {
    const std::string& argument = arguments.front();
    const Spelling* spelling = find<Spelling>(kSpellings, &Spelling::from, argument);
    const std::string name =
        spelling != nullptr ? std::string(spelling->to) : argument.substr(0, argument.find('='));
    const bool has_value = name.size() < argument.size() && spelling == nullptr;
    if (const CLI::Option* option = find_option(command_, name); option != nullptr) {
      mentioned_.insert(option);
      out_.push_back(spelling != nullptr ? name : argument);
      if (has_value || !takes_value(*option) || arguments.size() == 1) return 1;
      out_.push_back(arguments[1]);  // a value, whatever it looks like
      return 2;
    }
    if (is_cluster(command_, argument)) {
      mentioned_.insert(find_option(command_, argument.substr(0, 2)));
      out_.push_back(argument);
      return 1;
    }
    const IgnoredFlag* ignored = find_ignored_flag(name);
    if (ignored != nullptr && find_option(command_, "--model") != nullptr) {
      log::warn(fmt::format("{} does not apply to Godwit and is ignored", name));
      if (has_value || arguments.size() == 1) return 1;
      return can_be_value(ignored->value, arguments[1]) ? 2 : 1;
    }
    return fail("'{}' is not a flag of godwit {}; the nearest is {}", name, command_.get_name(),
                nearest(flag_names(command_), name));
  }

  const CLI::App& command_;
  std::vector<std::string> out_;
  std::set<const CLI::Option*> mentioned_;
};

// "ctx-size" -> "CTX_SIZE"
std::string capitals(std::string name) {
  for (char& c : name) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

struct Twin {
  std::string variable;
  std::string long_name;
};

std::vector<Twin> twins(const CLI::Option& option) {
  std::vector<Twin> all;
  for (const char* prefix : {"GODWIT_", "LLAMA_ARG_"}) {
    for (const std::string& name : option.get_lnames()) {
      all.push_back({prefix + capitals(name), name});
    }
  }
  for (const Spelling& row : kUpstreamTwins) {
    if (option.check_lname(std::string(row.from))) {
      all.push_back({std::string(row.to), std::string(row.from)});
    }
  }
  return all;
}

// Puts `--name=value` before the arguments for every twin that is set and not overruled.
void add_environment(const CLI::App& command, const Speller& given, CommandLine& line) {
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr() || given.mentions(option)) continue;
    const std::set<CLI::Option*> others = option->get_excludes();
    if (std::ranges::any_of(others, [&](const CLI::Option* o) { return given.mentions(o); })) {
      continue;
    }
    for (const Twin& twin : twins(*option)) {
      const char* value = std::getenv(twin.variable.c_str());
      if (value == nullptr || *value == '\0') continue;
      line.arguments.push_back(fmt::format("--{}={}", twin.long_name, value));
      line.from_environment.push_back({"--" + option->get_lnames().front(), twin.variable});
      break;
    }
  }
}

// CLI11 reads whole numbers with strtoull: -1 wraps around, what is too large is cut off, 010 is
// eight. Empty for a number as people write it, otherwise what is wrong.
template <class Number>
std::string whole_number_error(const std::string& text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && fmt::format("{}", value) == text) return "";
  return fmt::format("expected a whole number{} within 64 bits, found '{}'",
                     std::is_signed_v<Number> ? "" : ", 0 or more,", text);
}

}  // namespace

std::vector<std::string> flag_spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const Spelling& row : kSpellings) {
    if (option.check_lname(std::string(row.to.substr(2)))) names.emplace_back(row.from);
  }
  return names;
}

std::vector<std::string> environment_twins(const CLI::Option& option) {
  std::vector<std::string> names;
  for (Twin& twin : twins(option)) names.push_back(std::move(twin.variable));
  return names;
}

void settle_flags(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (!takes_value(*option) || !option->nonpositional()) continue;
      const std::string type = option->get_type_name();
      if (type.starts_with("UINT")) option->check(whole_number_error<uint64_t>, "");
      if (type.starts_with("INT")) option->check(whole_number_error<int64_t>, "");
      if (option->get_items_expected_max() == 1) {
        option->take_last();
      } else {
        option->allow_extra_args(false);
      }
    }
  }
}

Result<CommandLine> spell_out_flags(const CLI::App& app,
                                    const std::vector<std::string>& arguments) {
  if (arguments.empty()) return CommandLine{};
  const std::string& first = arguments.front();
  const CLI::App* command = find_command(app, first);
  if (command == nullptr) {
    if (app.get_option_no_throw(first) != nullptr) return CommandLine{arguments, {}};
    std::vector<std::string> names = flag_names(app);
    if (!first.starts_with('-')) names.clear();
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    return fail("'{}' is not a command; the nearest is {}; see godwit --help", first,
                nearest(names, first));
  }
  Speller speller(*command);
  if (Status s = speller.spell(std::span(arguments).subspan(1)); !s) {
    return fail("{}; see {}", s.error().message, help_of(app, *command));
  }
  CommandLine line;
  line.arguments.push_back(first);
  add_environment(*command, speller, line);
  const std::vector<std::string> spelled = speller.take();
  line.arguments.insert(line.arguments.end(), spelled.begin(), spelled.end());
  return line;
}

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error,
                                const CommandLine& line) {
  const CLI::App* found =
      line.arguments.empty() ? nullptr : find_command(app, line.arguments.front());
  const CLI::App& command = found == nullptr ? app : *found;
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && found != nullptr) {
    const std::vector<std::string> extras = command.remaining(true);
    message = fmt::format("unexpected argument '{}'", extras.empty() ? "" : extras.front());
  }
  for (const EnvironmentValue& value : line.from_environment) {
    if (message.find(value.flag) != std::string::npos) {
      message += fmt::format(" ({} in the environment)", value.variable);
    }
  }
  return fmt::format("{}; see {}", message, help_of(app, command));
}

}  // namespace godwit::apps
