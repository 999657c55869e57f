// The one binary. Commands register themselves; what they throw becomes an exit code: 0 done,
// 1 failed, 2 wrong usage, 130 interrupted.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/decode.h"
#include "apps/bench/kernel.h"
#include "apps/bench/prefill.h"
#include "apps/chat.h"
#include "apps/check/check.h"
#include "apps/check/kernels.h"
#include "apps/check/needles.h"
#include "apps/check/parity.h"
#include "apps/command.h"
#include "apps/completions.h"
#include "apps/devices.h"
#include "apps/flags.h"
#include "apps/info.h"
#include "apps/logits.h"
#include "apps/manual.h"
#include "apps/megakernel/check_command.h"
#include "apps/perplexity.h"
#include "apps/pull.h"
#include "apps/quantize.h"
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
  add_bench_decode_command(app);
  add_bench_kernel_command(app);
  add_bench_prefill_command(app);
  add_check_command(app);
  add_check_megakernel_command(app);
  add_check_kernels_command(app);
  add_check_needles_command(app);
  add_check_parity_command(app);
  add_logits_command(app);
  add_perplexity_command(app);
  add_synth_command(app);
  add_quantize_command(app);
  add_pull_command(app);
  add_devices_command(app);
  add_completions_command(app);
  add_man_command(app);
}

// `check megakernel` and its like are commands of their own, registered under one word
// (check-megakernel), with none of the flags of `check`.
void join_command_words(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.size() < 2) return;
  const std::string joined = arguments[0] + '-' + arguments[1];
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() != joined) continue;
    arguments.erase(arguments.begin());
    arguments[0] = joined;
    return;
  }
}

// What a command left in stdio's buffer; a full disk is an error like any other.
int flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  std::fprintf(stderr, "error: cannot write to standard output\n");
  return 1;
}

int run(CLI::App& app, const std::vector<std::string>& arguments) {
  namespace apps = godwit::apps;
  const godwit::Result<apps::CommandLine> line = apps::spell_out_flags(app, arguments);
  if (!line) {
    std::fprintf(stderr, "error: %s\n", apps::one_line(line.error().message).c_str());
    return 2;
  }
  try {
    // CLI11 takes a vector from its end.
    app.parse(std::vector<std::string>(line->arguments.rbegin(), line->arguments.rend()));
    return flush_output();
  } catch (const CLI::RuntimeError& error) {
    std::fflush(stdout);
    return error.get_exit_code();
  } catch (const CLI::Success& help) {
    app.exit(help);
    return flush_output();
  } catch (const CLI::ParseError& error) {
    const std::string message = apps::explain_usage_error(app, error, *line);
    std::fprintf(stderr, "error: %s\n", apps::one_line(message).c_str());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory\n");
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("godwit: fast single-stream decode of GGUF models at long context", "godwit");
  app.set_version_flag("--version", GODWIT_VERSION);
  app.require_subcommand(1);
  app.footer(
      "First steps:\n  godwit pull smollm2\n  godwit run -m smollm2 -p \"Why is the sky blue?\"\n"
      "Every flag of a command has an environment twin: --ctx-size is GODWIT_CTX_SIZE.");
  add_commands(app);
  app.set_help_all_flag("--help-all", "Help of every command");  // here, not in every command
  godwit::apps::settle_flags(app);
  if (argc < 2) {
    std::fprintf(stderr, "%s", app.help().c_str());
    return 2;
  }
  std::vector<std::string> arguments(argv + 1, argv + argc);
  join_command_words(app, arguments);
  return run(app, arguments);
}
