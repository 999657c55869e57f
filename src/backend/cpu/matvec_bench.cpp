// godwit_matvec_bench [filter [decode|cache]]: every kernel of the table that this processor can
// run and whose name contains `filter` (without one: all but the generic ones). Decode in GB/s of
// packed weights over more rows than any cache holds, beside the read bandwidth measured in the
// same rounds; prefill of 512 tokens in G multiply-adds/s unless `decode` is given. As many threads
// as processors. `cache` times one thread over 64 rows of 2048 out of the cache instead, which
// other work on the machine disturbs less. Results are not verified here: godwit_backend_cpu_test
// does.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "base/bits.h"
#include "base/random.h"
#include "quant/formats.h"

namespace godwit::cpu {
namespace {

constexpr size_t kBufferBytes = size_t{1600} << 20;
constexpr int kRounds = 7;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t thread_count() { return std::max(1u, std::thread::hardware_concurrency()); }

// Seconds of body(thread) on all threads at once.
template <class Body>
double time_once(Body body) {
  const size_t n = thread_count();
  std::atomic<size_t> ready = 0;
  std::vector<double> begin(n);
  std::vector<double> end(n);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready.load() < n) {
      }
      begin[i] = seconds_now();
      body(i);
      end[i] = seconds_now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::ranges::max(end) - std::ranges::min(begin);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::byte* huge_buffer(size_t n_bytes) {
  void* p = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(p, n_bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(p);
}

// Reads every byte, with or without the kernels' kind of prefetch.
template <bool kPrefetch>
uint64_t read_all(const std::byte* bytes, size_t n) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 64 <= n; i += 64) {
    if constexpr (kPrefetch) __builtin_prefetch(bytes + i + 8192, 0, 3);
    for (size_t k = 0; k < 8; ++k) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + i + 8 * k, 8);
      sums[k] += word;
    }
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

// GB/s of reading the whole buffer once, the better of two ways.
double read_gbps(const std::byte* buffer) {
  const size_t part = kBufferBytes / thread_count() / 64 * 64;
  std::atomic<uint64_t> sink = 0;
  const double plain =
      time_once([&](size_t i) { sink += read_all<false>(buffer + i * part, part); });
  const double ahead =
      time_once([&](size_t i) { sink += read_all<true>(buffer + i * part, part); });
  return static_cast<double>(part * thread_count()) / std::min(plain, ahead) * 1e-9;
}

struct Input {
  std::vector<float> x;
  std::vector<std::byte> scratch;
  Activations activations;

  Input(ActivationKind kind, size_t n_tokens, size_t cols, Isa isa)
      : x(n_tokens * cols), scratch(activation_bytes(kind, n_tokens, cols) + 64) {
    RandomStream random(7);
    for (float& value : x) value = static_cast<float>(random.bell());
    const size_t skip = (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    activations = layout_activations(kind, x.data(), cols, n_tokens, cols,
                                     std::span(scratch).subspan(skip, scratch.size() - 64));
    quantize_activations(kind, activations, x.data(), cols, cols, {0, n_tokens}, isa);
  }
};

// Fills the buffer with as many rows as fit, copies of 64 random ones, and returns their number.
size_t fill_rows(TensorType type, size_t cols, std::byte* buffer) {
  const Packing& packing = *find_packing(type);
  constexpr size_t kDistinct = 64;
  std::vector<std::byte> file(kDistinct * row_bytes(type, cols));
  RandomStream random(3);
  const size_t block = tensor_geometry(type).block_bytes;
  for (size_t at = 0; at < file.size(); at += block) {
    quant::find_format(type)->random_block(random, 1.0f, &file[at]);
  }
  const size_t group = kDistinct * packing.packed_row_bytes(cols);
  const size_t n_groups = kBufferBytes / group;
  packing.pack(file.data(), kDistinct, cols, buffer);
  for (size_t i = 1; i < n_groups; ++i) std::memcpy(buffer + i * group, buffer, group);
  return n_groups * kDistinct;
}

MatVecArgs args_of(const std::byte* weights, size_t rows, size_t cols, const Input& input,
                   size_t n_tokens, std::vector<float>& y) {
  y.resize(n_tokens * rows);
  return {.weights = weights,
          .rows = rows,
          .cols = cols,
          .row_begin = 0,
          .row_end = rows,
          .x = input.activations,
          .n_tokens = n_tokens,
          .y = y.data(),
          .y_stride = rows};
}

void run_part(const MatVecKernel& kernel, MatVecArgs args, size_t thread) {
  const size_t part = round_up(div_up(args.rows, thread_count()), kTileRows);
  args.row_begin = std::min(args.rows, thread * part);
  args.row_end = std::min(args.rows, args.row_begin + part);
  if (args.row_begin < args.row_end) kernel.run(args);
}

struct Decode {
  double gbps = 0;       // best
  double read_gbps = 0;  // best of the reads between
  double share = 0;      // median of the rounds' quotients: what else runs here slows both
};

Decode bench_decode(const MatVecKernel& kernel, size_t n_tokens, std::byte* buffer) {
  constexpr size_t kCols = 4096;
  const size_t rows = fill_rows(kernel.type, kCols, buffer);
  const Input input(kernel.activation, n_tokens, kCols, kernel.isa);
  std::vector<float> y;
  const MatVecArgs args = args_of(buffer, rows, kCols, input, n_tokens, y);
  const auto bytes = static_cast<double>(rows * find_packing(kernel.type)->packed_row_bytes(kCols));
  Decode result;
  std::vector<double> shares;
  for (int round = 0; round < kRounds; ++round) {
    const double read = read_gbps(buffer);
    const double s = time_once([&](size_t thread) { run_part(kernel, args, thread); });
    const double gbps = bytes / s * 1e-9;
    result.gbps = std::max(result.gbps, gbps);
    result.read_gbps = std::max(result.read_gbps, read);
    shares.push_back(gbps / read);
  }
  result.share = median(shares);
  return result;
}

// Best G multiply-adds/s over 512 tokens.
double bench_prefill(const MatVecKernel& kernel, size_t rows, size_t cols, std::byte* buffer) {
  constexpr size_t kTokens = 512;
  fill_rows(kernel.type, cols, buffer);
  const Input input(kernel.activation, kTokens, cols, kernel.isa);
  std::vector<float> y;
  const MatVecArgs args = args_of(buffer, rows, cols, input, kTokens, y);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double s = time_once([&](size_t thread) { run_part(kernel, args, thread); });
    best = std::max(best, static_cast<double>(rows * cols * kTokens) / s * 1e-9);
  }
  return best;
}

// GB/s of packed weights that one thread reads out of the cache, best of many runs; two tokens are
// the two planes of one.
void bench_cache(const MatVecKernel& kernel, std::byte* buffer) {
  constexpr size_t kRows = 64;
  constexpr size_t kCols = 2048;
  fill_rows(kernel.type, kCols, buffer);
  const auto bytes =
      static_cast<double>(kRows * find_packing(kernel.type)->packed_row_bytes(kCols));
  fmt::print("{:<18}", kernel.name);
  for (const size_t n_tokens : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
    const Input input(kernel.activation, n_tokens, kCols, kernel.isa);
    std::vector<float> y;
    const MatVecArgs args = args_of(buffer, kRows, kCols, input, n_tokens, y);
    double best = 1e9;
    for (int run = 0; run < 400; ++run) {
      const double begin = seconds_now();
      kernel.run(args);
      best = std::min(best, seconds_now() - begin);
    }
    fmt::print(" | {} tokens {:6.2f} GB/s {:6.1f} Gmac/s", n_tokens, bytes / best * 1e-9,
               static_cast<double>(kRows * kCols * n_tokens) / best * 1e-9);
  }
  fmt::print("\n");
}

void bench_kernel(const MatVecKernel& kernel, std::byte* buffer, bool prefill) {
  const Decode one = bench_decode(kernel, 1, buffer);
  const Decode four = bench_decode(kernel, 4, buffer);
  fmt::print("{:<16} {:6.2f} of {:6.2f} GB/s, median {:5.1f} % | 4 tokens {:6.2f} GB/s, {:5.1f} %",
             kernel.name, one.gbps, one.read_gbps, 100 * one.share, four.gbps, 100 * four.share);
  if (prefill) {
    fmt::print(" | 512 tokens {:6.1f} (2048x2048) {:6.1f} (8192x2048) Gmac/s",
               bench_prefill(kernel, 2048, 2048, buffer),
               bench_prefill(kernel, 8192, 2048, buffer));
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int run_bench(int argc, char** argv);
int run_bench(int argc, char** argv) {
  const std::string_view filter = argc > 1 ? argv[1] : "";
  const std::string_view mode = argc > 2 ? argv[2] : "";
  std::byte* buffer = huge_buffer(kBufferBytes);
  std::memset(buffer, 1, kBufferBytes);
  fmt::print("{}, {} threads\n", processor_name(), thread_count());
  for (const MatVecKernel& kernel : matvec_kernels()) {
    if (kernel.isa > detected_isa()) continue;
    if (kernel.name.find(filter) == std::string_view::npos) continue;
    if (filter.empty() && kernel.isa == Isa::kGeneric) continue;
    if (mode == "cache") {
      bench_cache(kernel, buffer);
    } else {
      bench_kernel(kernel, buffer, mode != "decode");
    }
  }
  return 0;
}

}  // namespace godwit::cpu

int main(int argc, char** argv) { return godwit::cpu::run_bench(argc, argv); }
