#include "apps/manual.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdio>

#include "apps/command_tree.h"

namespace godwit::apps {
namespace {

// Text of a line: backslashes spelled out, hyphens that stay hyphens, no line that begins as a
// macro would.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool at_start = out.empty() || out.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "\fB\-c\fR, \fB\-\-ctx\-size\fR \fIUINT\fR"
std::string heading(const FlagFacts& flag) {
  std::string out;
  for (const std::string& name : flag.names) {
    out += (out.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  }
  const std::string value = flag.value_name.substr(0, flag.value_name.find(':'));
  if (flag.value != FlagValue::kNone)
    out += " \\fI" + roff(value.empty() ? "VALUE" : value) + "\\fR";
  return out;
}

std::string flag_entry(const FlagFacts& flag) {
  const bool ended = flag.description.ends_with('.') || flag.description.empty();
  std::string out =
      ".TP\n" + heading(flag) + "\n" + roff(flag.description) + (ended ? "\n" : ".\n");
  std::string more;
  if (flag.required) more += " Required.";
  const size_t words = flag.value_name.find('{');
  if (words != std::string::npos) more += " One of " + flag.value_name.substr(words) + ".";
  if (!flag.default_text.empty()) more += " Default: " + flag.default_text + ".";
  if (!flag.variables.empty()) more += " Environment: " + flag.variables.front() + ".";
  return more.empty() ? out : out + roff(more.substr(1)) + "\n";
}

// What a command's help ends with, its lines kept.
std::string verbatim(const std::string& text) {
  return text.empty() ? "" : ".PP\n.nf\n" + roff(text) + "\n.fi\n";
}

std::string command_section(const CommandFacts& command) {
  std::string arguments;
  for (const FlagFacts& positional : command.positionals) {
    arguments += " \\fI" + roff(capitals(positional.names.front())) + "\\fR";
  }
  std::string out =
      fmt::format(".SS godwit {}\n{}.\n.PP\n\\fBgodwit {}\\fR [\\fIflags\\fR]{}\n",
                  roff(command.name), roff(command.description), roff(command.name), arguments);
  for (const FlagFacts& positional : command.positionals) {
    FlagFacts shown = positional;
    shown.names = {capitals(positional.names.front())};
    shown.value = FlagValue::kNone;
    out += flag_entry(shown);
  }
  for (const FlagFacts& flag : command.flags) out += flag_entry(flag);
  return out + verbatim(command.footer);
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  const CommandFacts program = program_facts(app);
  std::string out = fmt::format(
      ".TH GODWIT 1 \"\" \"godwit {}\" \"User Commands\"\n.ad l\n.nh\n.SH NAME\ngodwit \\- {}\n"
      ".SH SYNOPSIS\n\\fBgodwit\\fR \\fICOMMAND\\fR [\\fIflags\\fR]\n",
      roff(app.version()), roff(program.description.substr(program.description.find(": ") + 2)));
  out += ".SH DESCRIPTION\n" +
         roff(
             "Text goes to standard output, everything else to standard error. Flags are spelled "
             "as in llama.cpp; of a repeated flag the last counts.") +
         "\n.SH OPTIONS\n";
  for (const FlagFacts& flag : program.flags) out += flag_entry(flag);
  out += ".SH COMMANDS\n";
  for (const CommandFacts& command : command_facts(app)) out += command_section(command);
  out += ".SH ENVIRONMENT\n" +
         roff(
             "Every flag of a command has a twin in the environment: GODWIT_ and its long form in "
             "capitals with underscores (GODWIT_CTX_SIZE), then LLAMA_ARG_ and the same. A flag "
             "beats its twin.") +
         "\n.TP\n\\fBGODWIT_ISA\\fR\n" +
         roff("generic, avx2, avx512vnni or avx512bf16: use less than the processor has.") + "\n";
  out += ".SH EXIT STATUS\n" +
         roff(
             "0 done; 1 failed, with one line that says what was expected, what was found and "
             "where; 2 wrong usage; 130 interrupted.") +
         "\n.SH FILES\n.TP\n" + roff("~/.cache/godwit/models") + "\n" +
         roff("Models that pull fetched; under XDG_CACHE_HOME where that is set.") + "\n";
  return out + ".SH EXAMPLES\n" + verbatim(program.footer);
}

void add_man_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("man", "The manual page, in troff");
  command->footer("Example:\n  godwit man > godwit.1 && man ./godwit.1");
  command->callback([&app] {
    const std::string page = manual_page(app);
    std::fwrite(page.data(), 1, page.size(), stdout);
  });
}

}  // namespace godwit::apps
