// godwit_attention_bench: attention at the shapes of known models. Decode of one token in GB/s of
// keys and values, over more layers than any cache holds; prefill of 512 tokens in G
// multiply-adds/s. All processors; the best of many rounds, which is what a busy machine leaves
// comparable. The result of the first round is checked against the generic kernels before timing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "backend/cpu/attention.h"
#include "base/check.h"
#include "base/half.h"
#include "base/random.h"
#include "os/memory.h"
#include "os/thread_pool.h"

namespace godwit::cpu {
namespace {

constexpr size_t kCacheBytes = size_t{256} << 20;
constexpr int kRounds = 40;

struct Case {
  std::string_view model;
  size_t n_heads;
  size_t n_kv_heads;
  size_t head_dim;
  size_t position;  // of the first token
  size_t n_tokens;
};

constexpr Case kCases[] = {
    {"SmolLM2-135M", 9, 3, 64, 4095, 1},    {"Qwen2.5-1.5B", 12, 2, 128, 4095, 1},
    {"Qwen2.5-1.5B", 12, 2, 128, 32767, 1}, {"Llama-3-8B", 32, 8, 128, 4095, 1},
    {"Llama-2-7B", 32, 32, 128, 4095, 1},   {"SmolLM2-135M", 9, 3, 64, 0, 512},
    {"Qwen2.5-1.5B", 12, 2, 128, 0, 512},   {"Qwen2.5-1.5B", 12, 2, 128, 4096, 512},
    {"Llama-3-8B", 32, 8, 128, 0, 512},
};

AlignedBuffer buffer_of(size_t bytes) {
  Result<AlignedBuffer> buffer = AlignedBuffer::create(bytes, 64);
  check(buffer.has_value(), "no memory for the bench");
  return std::move(*buffer);
}

class Bench {
 public:
  Bench(const Case& c, size_t n_threads)
      : case_(c),
        pool_(n_threads),
        length_(c.position + c.n_tokens),
        layer_bytes_(kv_bytes(TensorType::kF16, c.n_kv_heads, c.head_dim, length_)),
        // Decode goes through many layers, so that nothing is cached; prefill reuses one.
        n_layers_(c.n_tokens > 1 ? 1 : std::max<size_t>(1, kCacheBytes / (2 * layer_bytes_))),
        k_(buffer_of(n_layers_ * layer_bytes_)),
        v_(buffer_of(n_layers_ * layer_bytes_)),
        scratch_(buffer_of(attention_scratch_bytes({.n_heads = c.n_heads,
                                                    .n_kv_heads = c.n_kv_heads,
                                                    .head_dim = c.head_dim,
                                                    .max_positions = length_,
                                                    .max_tokens = c.n_tokens,
                                                    .n_threads = n_threads}))),
        q_(c.n_tokens * width()),
        out_(c.n_tokens * width()) {
    RandomStream random(1);
    std::vector<uint16_t> words(layer_bytes_ / 2);
    for (uint16_t& word : words) word = f32_to_f16(static_cast<float>(random.bell()));
    for (size_t layer = 0; layer < n_layers_; ++layer) {
      std::memcpy(k_.data() + layer * layer_bytes_, words.data(), layer_bytes_);
      std::memcpy(v_.data() + layer * layer_bytes_, words.data(), layer_bytes_);
    }
    for (float& x : q_) x = static_cast<float>(random.bell());
  }

  // Seconds of one layer, the best of all rounds.
  double time(Isa isa) {
    run_layer(0, Isa::kGeneric);
    const std::vector<float> expected = out_;
    run_layer(0, isa);
    check(out_ == expected, "a result differs from the generic kernels'");
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (size_t layer = 0; layer < n_layers_; ++layer) run_layer(layer, isa);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      best = std::min(best, seconds.count() / static_cast<double>(n_layers_));
    }
    return best;
  }

  void report(Isa isa) {
    const double seconds = time(isa);
    const double pairs =
        static_cast<double>(case_.n_tokens) *
        (static_cast<double>(case_.position) + static_cast<double>(case_.n_tokens + 1) / 2.0);
    const double bytes = static_cast<double>(case_.n_kv_heads * case_.head_dim * 4 * length_);
    const double macs = 2.0 * pairs * static_cast<double>(width());
    fmt::print("{:<14} {:>2}/{:<2} x {:<4} {:>6} + {:<4} {:<11} {:>9.1f} us  {}\n", case_.model,
               case_.n_heads, case_.n_kv_heads, case_.head_dim, case_.position, case_.n_tokens,
               isa_name(isa), seconds * 1e6,
               case_.n_tokens == 1 ? fmt::format("{:.1f} GB/s", bytes / seconds * 1e-9)
                                   : fmt::format("{:.0f} GMAC/s", macs / seconds * 1e-9));
  }

 private:
  [[nodiscard]] size_t width() const { return case_.n_heads * case_.head_dim; }

  void run_layer(size_t layer, Isa isa) {
    const AttentionArgs args = {.q = q_.data(),
                                .q_stride = width(),
                                .cache = {.k = k_.data() + layer * layer_bytes_,
                                          .v = v_.data() + layer * layer_bytes_,
                                          .n_kv_heads = case_.n_kv_heads,
                                          .head_dim = case_.head_dim,
                                          .capacity = kv_capacity(length_)},
                                .n_heads = case_.n_heads,
                                .first_position = case_.position,
                                .n_tokens = case_.n_tokens,
                                .scale = 0.1f,
                                .scratch = scratch_.bytes(),
                                .out = out_.data(),
                                .out_stride = width()};
    pool_.run([&](size_t thread) {
      attention_run(args, thread, pool_.size(), isa);
      pool_.barrier();
      attention_merge(args, thread, pool_.size(), isa);
    });
  }

  Case case_;
  ThreadPool pool_;
  size_t length_;
  size_t layer_bytes_;
  size_t n_layers_;
  AlignedBuffer k_;
  AlignedBuffer v_;
  AlignedBuffer scratch_;
  std::vector<float> q_;
  std::vector<float> out_;
};

}  // namespace
}  // namespace godwit::cpu

int main() {
  using godwit::Isa;
  const size_t n_threads = std::max(1u, std::thread::hardware_concurrency());
  fmt::print("{}, {} threads, f16 keys and values\n", godwit::processor_name(), n_threads);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa > godwit::detected_isa()) continue;
    for (const godwit::cpu::Case& c : godwit::cpu::kCases) {
      godwit::cpu::Bench(c, n_threads).report(isa);
    }
  }
  return 0;
}
