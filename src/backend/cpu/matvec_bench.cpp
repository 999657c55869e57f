// godwit_matvec_bench [FILTER [decode|cache]]: every kernel of the table that this processor can
// run and whose name contains FILTER (without one: all but the generic ones), without building the
// whole program; `godwit bench kernel` is the same measurement at any shape. Decode at 8192 x 4096,
// with as many planes of activations as the executor multiplies and with one; prompts of 512 tokens
// unless `decode` is given. `cache` times 64 rows of 2048 out of each thread's cache instead, which
// other work on the machine disturbs less.
#include <fmt/format.h>

#include <string_view>

#include "backend/cpu/matvec_measure.h"
#include "os/topology.h"

namespace godwit::cpu {
namespace {

int failed(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

int bench_cache(const MatVecKernel& kernel) {
  fmt::print("{:<18}", kernel.name);
  for (const size_t n_tokens : {size_t{1}, size_t{4}, size_t{8}, size_t{64}}) {
    const auto speed = measure_cached_matvec({.kernel = &kernel,
                                              .rows = 64,
                                              .cols = 2048,
                                              .n_tokens = n_tokens,
                                              .n_planes = activation_planes(kernel.activation),
                                              .n_threads = available_cores()});
    if (!speed) return failed(speed.error());
    fmt::print(" | {} tokens {:6.2f} GB/s {:6.1f} Gmac/s", n_tokens, speed->gbps, speed->gmacs);
  }
  fmt::print("\n");
  return 0;
}

int bench_memory(const MatVecKernel& kernel, bool prefill) {
  MatVecCase c{.kernel = &kernel,
               .rows = 8192,
               .cols = 4096,
               .n_tokens = 1,
               .n_planes = activation_planes(kernel.activation),
               .n_threads = available_cores()};
  fmt::print("{:<18}", kernel.name);
  for (; c.n_planes > 0; --c.n_planes) {
    const auto speed = measure_matvec(c);
    if (!speed) return failed(speed.error());
    fmt::print(" | {} planes {:7.1f} us {:6.2f} of {:6.2f} GB/s, {:5.1f} %", c.n_planes, speed->us,
               speed->gbps, speed->read_gbps, 100 * speed->share);
  }
  c.n_planes = activation_planes(kernel.activation);
  c.n_tokens = 512;
  if (prefill) {
    const auto speed = measure_matvec(c);
    if (!speed) return failed(speed.error());
    fmt::print(" | 512 tokens {:6.1f} Gmac/s", speed->gmacs);
  }
  fmt::print("\n");
  return 0;
}

}  // namespace

int run_bench(int argc, char** argv);
int run_bench(int argc, char** argv) {
  const std::string_view filter = argc > 1 ? argv[1] : "";
  const std::string_view mode = argc > 2 ? argv[2] : "";
  fmt::print("{}, {} threads\n", processor_name(), available_cores());
  for (const MatVecKernel& kernel : matvec_kernels()) {
    if (kernel.isa > detected_isa()) continue;
    if (kernel.name.find(filter) == std::string_view::npos) continue;
    if (filter.empty() && kernel.isa == Isa::kGeneric) continue;
    const int code = mode == "cache" ? bench_cache(kernel) : bench_memory(kernel, mode != "decode");
    if (code != 0) return code;
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace godwit::cpu

int main(int argc, char** argv) { return godwit::cpu::run_bench(argc, argv); }
