// The one binary. Commands register themselves; what they throw becomes an exit code: 0 done,
// 1 failed, 2 wrong usage, 130 interrupted.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/chat.h"
#include "apps/check.h"
#include "apps/flags.h"
#include "apps/info.h"
#include "apps/logits.h"
#include "apps/pull.h"
#include "apps/run.h"
#include "apps/synth.h"
#include "apps/tokenize.h"

namespace {

void add_commands(CLI::App& app) {
  using namespace godwit::apps;  // one line per command
  add_run_command(app);
  add_chat_command(app);
  add_info_command(app);
  add_tokenize_command(app);
  add_bench_command(app);
  add_check_command(app);
  add_logits_command(app);
  add_synth_command(app);
  add_pull_command(app);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("godwit: fast single-stream decode of GGUF models at long context", "godwit");
  app.set_version_flag("--version", GODWIT_VERSION);
  app.set_help_all_flag("--help-all", "Help of every command");
  app.require_subcommand(1);
  app.footer(
      "First steps:\n  godwit pull smollm2\n  godwit run -m smollm2 -p \"Why is the sky blue?\"");
  add_commands(app);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    arguments = godwit::apps::spell_out_flags(std::move(arguments));
    // CLI11 takes a vector from its end.
    app.parse({arguments.rbegin(), arguments.rend()});
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string message = godwit::apps::explain_usage_error(app, error, arguments);
    std::fprintf(stderr, "error: %s\n", message.c_str());
    return 2;
  }
}
