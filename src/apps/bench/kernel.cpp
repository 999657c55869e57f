#include "apps/bench/kernel.h"

#include <fmt/format.h>

#include <memory>

#include "apps/bench/bench_setting.h"
#include "apps/bench/kernel_plan.h"
#include "apps/bench/kernel_report.h"
#include "apps/command.h"

namespace godwit::apps {
namespace {

struct KernelOptions {
  KernelLists lists;
  bool attention = false;
  std::string format = "md";
};

std::string footer() { return fmt::format("{}; commit {}", processor_name(), build_commit()); }

Status bench_matvecs(const KernelOptions& options, BenchFormat format) {
  const Result<std::vector<cpu::MatVecCase>> cases = plan_matvecs(options.lists);
  if (!cases) return fail(cases.error());
  Report report(format, matvec_columns());
  for (const cpu::MatVecCase& c : *cases) {
    const Result<cpu::MatVecSpeed> speed = cpu::measure_matvec(c);
    if (!speed) return fail(speed.error());
    show(report.add(matvec_row(c, *speed)));
  }
  show(report.end(footer()));
  return {};
}

Status bench_attention(const KernelOptions& options, BenchFormat format) {
  const Result<std::vector<cpu::AttentionCase>> cases = plan_attention(options.lists);
  if (!cases) return fail(cases.error());
  Report report(format, attention_columns());
  for (const cpu::AttentionCase& c : *cases) {
    const Result<cpu::AttentionSpeed> speed = cpu::measure_attention(c);
    if (!speed) return fail(speed.error());
    show(report.add(attention_row(c, *speed)));
  }
  show(report.end(footer()));
  return {};
}

Status bench_kernel(const KernelOptions& options) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  return options.attention ? bench_attention(options, *format) : bench_matvecs(options, *format);
}

}  // namespace

void add_bench_kernel_command(CLI::App& app) {
  auto options = std::make_shared<KernelOptions>();
  KernelLists& lists = options->lists;
  CLI::App* command = app.add_subcommand(
      "bench-kernel", "The cpu kernels at real shapes, out of memory (also: bench kernel)");
  const auto list = [&](const std::string& flags, auto& values, const std::string& help) {
    return command->add_option(flags, values, help)->delimiter(',')->capture_default_str();
  };
  list("--type", lists.types, "Types of weights (q4_k), or all");
  list("--shape", lists.shapes, "Matrices: ROWSxCOLS");
  list("--tokens", lists.tokens, "Tokens that share one reading of the matrix; a prompt: 512");
  list("--planes", lists.planes,
       "Planes of eight bits that activations are multiplied in: 1 or 2; default: as models run");
  list("--isa", lists.isas, "generic, avx2, avx512vnni, avx512bf16; default: as models run");
  command->add_flag("--attention", options->attention,
                    "Attention over keys and values in place of matrices");
  list("--positions", lists.positions, "Of --attention: positions seen");
  list("--heads", lists.heads, "Of --attention: HEADSxKV_HEADSxDIM");
  list("--kv", lists.kv_pairs, "Of --attention: types as f16/q8_0; default: all that matter");
  command->add_option("-t,--threads", lists.n_threads, "Threads; 0: one per available core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("-r,--repetitions", lists.n_rounds, "Rounds of each matrix")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("-o,--output", options->format, "md, csv, json or jsonl")
      ->capture_default_str();
  command->add_flag_callback(
      "--json", [options] { options->format = "json"; }, "The same as -o json");
  command->footer(
      "Medians; % bw is the median of the rounds' shares of the reads between them, and Gmac/s\n"
      "counts a token once, in however many planes it is multiplied.\n"
      "Example:\n  godwit bench kernel --type q4_k,q8_0 --shape 8192x2048 --tokens 1,4,512\n"
      "  godwit bench kernel --attention --kv f16,f32 --positions 4096");
  command->callback([options] { finish(bench_kernel(*options)); });
}

}  // namespace godwit::apps
