#include "apps/bench/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/bench/bench_plots.h"
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
  std::string plot;  // a file; "": none
};

std::string footer() { return fmt::format("{}; commit {}", processor_name(), build_commit()); }

// The highest rate out of the cache among the kernels of the results, as a prompt would reach it.
Result<double> peak_gmacs(const std::vector<MatVecResult>& results) {
  constexpr size_t kManyTokens = 64;
  double peak = 0;
  const cpu::MatVecKernel* last = nullptr;
  for (const MatVecResult& result : results) {
    if (std::exchange(last, result.c.kernel) == result.c.kernel) continue;
    cpu::MatVecCase c = result.c;
    c.n_tokens = kManyTokens;
    const Result<cpu::MatVecSpeed> speed = cpu::measure_cached_matvec(c);
    if (!speed) return fail(speed.error());
    peak = std::max(peak, speed->gmacs);
  }
  return peak;
}

Status bench_matvecs(const KernelOptions& options, BenchFormat format) {
  const Result<std::vector<cpu::MatVecCase>> cases = plan_matvecs(options.lists);
  if (!cases) return fail(cases.error());
  Report report(format, matvec_columns());
  std::vector<MatVecResult> results;
  for (const cpu::MatVecCase& c : *cases) {
    const Result<cpu::MatVecSpeed> speed = cpu::measure_matvec(c);
    if (!speed) return fail(speed.error());
    show(report.add(matvec_row(c, *speed)));
    results.push_back({.c = c, .speed = *speed});
  }
  show(report.end(footer()));
  if (options.plot.empty()) return {};
  const Result<double> peak = peak_gmacs(results);
  if (!peak) return fail(peak.error());
  return write_plot(options.plot, roofline(results, *peak, footer()));
}

Status bench_attention(const KernelOptions& options, BenchFormat format) {
  const Result<std::vector<cpu::AttentionCase>> cases = plan_attention(options.lists);
  if (!cases) return fail(cases.error());
  Report report(format, attention_columns());
  std::vector<AttentionResult> results;
  for (const cpu::AttentionCase& c : *cases) {
    const Result<cpu::AttentionSpeed> speed = cpu::measure_attention(c);
    if (!speed) return fail(speed.error());
    show(report.add(attention_row(c, *speed)));
    results.push_back({.c = c, .speed = *speed});
  }
  show(report.end(footer()));
  if (options.plot.empty()) return {};
  return write_plot(options.plot, attention_plot(results, footer()));
}

Status bench_kernel(const KernelOptions& options) {
  const Result<BenchFormat> format = parse_bench_format(options.format);
  if (!format) return fail(format.error());
  if (Status s = check_plot_path(options.plot); !s) return s;
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
  command->add_option("--plot", options->plot,
                      "SVG file for a picture of it: roofline, or attention by length");
  command->footer(
      "Medians; % bw is the median of the rounds' shares of the reads between them, and Gmac/s\n"
      "counts a token once, in however many planes it is multiplied.\n"
      "Example:\n  godwit bench kernel --type q4_k,q8_0 --shape 8192x2048 --tokens 1,4,512\n"
      "  godwit bench kernel --attention --kv f16,f32 --positions 4096");
  command->callback([options] { finish(bench_kernel(*options)); });
}

}  // namespace godwit::apps
