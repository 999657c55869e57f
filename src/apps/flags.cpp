#include "apps/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace godwit::apps {
namespace {

struct Spelling {
  std::string_view from;
  std::string_view to;
};

constexpr auto kSpellings = std::to_array<Spelling>({
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-no-cnv", "--no-conversation"},
    {"-sys", "--system-prompt"},
    {"-sysf", "--system-prompt-file"},
    {"-ub", "--ubatch-size"},
    {"-pg", "--prompt-gen"},
    {"-bf", "--prompt-file"},
});

// Upstream flags that have nothing to change here, and whether a value follows.
struct Ignored {
  std::string_view flag;
  bool takes_value;
};

constexpr auto kIgnored = std::to_array<Ignored>({
    {"-ngl", true},         {"--gpu-layers", true}, {"--n-gpu-layers", true},
    {"-fa", true},          {"--flash-attn", true}, {"-b", true},
    {"--batch-size", true}, {"-tb", true},          {"--threads-batch", true},
    {"--no-mmap", false},   {"--mlock", false},     {"-cnv", false},
    {"--jinja", false},     {"--numa", true},       {"-dev", true},
    {"--device", true},     {"-sm", true},          {"--split-mode", true},
    {"-mg", true},          {"--main-gpu", true},   {"--no-warmup", false},
    {"--simple-io", false}, {"-st", false},         {"--single-turn", false},
});

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

std::string nearest(const CLI::App& command, std::string_view wrong) {
  std::string best;
  size_t best_distance = SIZE_MAX;
  const auto consider = [&](const std::string& name) {
    const size_t distance = edit_distance(name, wrong);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  };
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) consider("--" + name);
    for (const std::string& name : option->get_snames()) consider("-" + name);
  }
  for (const CLI::App* sub : command.get_subcommands({})) consider(sub->get_name());
  return best;
}

const CLI::App& command_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (!arguments.empty() && sub->get_name() == arguments.front()) return *sub;
  }
  return app;
}

}  // namespace

std::vector<std::string> spell_out_flags(std::vector<std::string> arguments) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    // A value is never a flag: what follows -p is text even if it looks like one.
    const bool is_value = i > 0 && (arguments[i - 1] == "-p" || arguments[i - 1] == "--prompt");
    const auto ignored = std::find_if(kIgnored.begin(), kIgnored.end(),
                                      [&](const Ignored& row) { return row.flag == argument; });
    if (!is_value && ignored != kIgnored.end()) {
      log::warn(fmt::format("{} does not apply to Godwit and is ignored", argument));
      i += ignored->takes_value ? 1 : 0;
      continue;
    }
    const auto spelling = std::find_if(kSpellings.begin(), kSpellings.end(),
                                       [&](const Spelling& row) { return row.from == argument; });
    if (!is_value && spelling != kSpellings.end()) {
      out.emplace_back(spelling->to);
    } else {
      out.push_back(argument);
    }
  }
  return out;
}

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments) {
  const CLI::App& command = command_of(app, arguments);
  const std::string help =
      &command == &app ? "godwit --help" : fmt::format("godwit {} --help", command.get_name());
  if (error.get_name() != "ExtrasError") {
    return fmt::format("{}; see {}", error.what(), help);
  }
  const std::vector<std::string> extras =
      &command == &app ? app.remaining(true) : command.remaining(true);
  const std::string wrong =
      extras.empty() ? (arguments.empty() ? "" : arguments.front()) : extras.front();
  return fmt::format("'{}' is not known; the nearest is {}; see {}", wrong, nearest(command, wrong),
                     help);
}

void add_environment(CLI::Option* option, const std::string& name) {
  const std::string own = "GODWIT_" + name;
  option->envname(std::getenv(own.c_str()) != nullptr ? own : "LLAMA_ARG_" + name);
}

}  // namespace godwit::apps
