// godwit_attention_bench [words...]: attention over KV caches, decode in GB/s of keys and values
// and in percent of the read bandwidth measured in the same rounds, prefill of 512 tokens in G
// multiply-adds/s. Words narrow it down: an instruction set (avx2), a pair of types (q8_0/q4_0), a
// head width (128), a length (16K), a length of blocks (b256; without one as the engine has it), a
// number of threads (1T; without one all processors), decode or prefill; several of a kind add up.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/attention_block.h"
#include "backend/cpu/attention_measure.h"
#include "backend/kv_rounding.h"
#include "base/bits.h"

namespace godwit::cpu {
namespace {

std::string lower(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// One axis of the table: what there is, and which of it the words ask for.
template <class T>
struct Axis {
  std::vector<std::pair<std::string, T>> all;
  std::vector<std::pair<std::string, T>> unasked = all;
  std::vector<std::pair<std::string, T>> chosen = {};

  bool take(std::string_view word) {
    for (const auto& entry : all) {
      if (entry.first != word) continue;
      chosen.push_back(entry);
      return true;
    }
    return false;
  }
  [[nodiscard]] const auto& wanted() const { return chosen.empty() ? unasked : chosen; }
};

struct Types {
  TensorType k;
  TensorType v;
};

struct Shape {
  size_t n_heads;
  size_t n_kv_heads;
  size_t head_dim;
};

Axis<Isa> isas() {
  Axis<Isa> axis;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa <= detected_isa()) axis.all.emplace_back(isa_name(isa), isa);
  }
  axis.unasked = {axis.all.back()};
  return axis;
}

Axis<Types> pairs() {
  Axis<Types> axis;
  for (const TensorType k : backend::kKvTypes) {
    for (const TensorType v : backend::kKvTypes) {
      axis.all.emplace_back(lower(tensor_type_name(k)) + "/" + lower(tensor_type_name(v)),
                            Types{k, v});
    }
  }
  axis.unasked = axis.all;
  return axis;
}

Axis<size_t> blocks() {
  Axis<size_t> axis;
  for (const size_t length : kAttentionBlocks) {
    axis.all.emplace_back(fmt::format("b{}", length), length);
  }
  axis.unasked = {{"", 0}};
  return axis;
}

Axis<size_t> thread_counts() {
  Axis<size_t> axis;
  const size_t most = std::max(1u, std::thread::hardware_concurrency());
  for (size_t n = 1; n <= most; ++n) axis.all.emplace_back(fmt::format("{}T", n), n);
  axis.unasked = {axis.all.back()};
  return axis;
}

struct Table {
  Axis<Isa> isa = isas();
  Axis<Types> types = pairs();
  Axis<Shape> shape = {.all = {{"64", {32, 8, 64}}, {"128", {32, 8, 128}}}};
  Axis<size_t> length = {.all = {{"1K", 1024},
                                 {"2K", 2048},
                                 {"4K", 4096},
                                 {"16K", 16384},
                                 {"64K", 65536},
                                 {"256K", 262144}}};
  Axis<size_t> block = blocks();
  Axis<size_t> threads = thread_counts();
  Axis<size_t> kind = {.all = {{"decode", 1}, {"prefill", 512}}};

  bool take(std::string_view word) {
    return isa.take(word) || types.take(word) || shape.take(word) || length.take(word) ||
           block.take(word) || threads.take(word) || kind.take(word);
  }
};

// False where it cannot be measured.
bool report(const AttentionCase& c) {
  const Result<AttentionSpeed> speed = measure_attention(c);
  if (!speed) {
    fmt::print(stderr, "{}\n", speed.error().message);
    return false;
  }
  const size_t block = attention_block(c.n_positions - 1, c.block);
  fmt::print("{:>2}/{:<2} x {:<4} {:>7} + {:<4} {:>5}/{:<5} {:<11} {}T b{:<4} {:>10.1f} us  {}\n",
             c.n_heads, c.n_kv_heads, c.head_dim, c.n_positions - c.n_tokens, c.n_tokens,
             lower(tensor_type_name(c.k_type)), lower(tensor_type_name(c.v_type)), isa_name(c.isa),
             c.n_threads, block, speed->us,
             c.n_tokens == 1 ? fmt::format("{:6.1f} GB/s of {:6.1f}: {:3.0f} %", speed->gbps,
                                           speed->read_gbps, speed->share * 100)
                             : fmt::format("{:6.0f} GMAC/s", speed->gmacs));
  return true;
}

// Every combination of what is wanted, the last axis fastest.
bool report_all(const Table& table) {
  std::vector<AttentionCase> cases = {{}};
  const auto vary = [&](const auto& axis, auto set) {
    std::vector<AttentionCase> varied;
    for (const AttentionCase& c : cases) {
      for (const auto& [name, value] : axis.wanted()) set(varied.emplace_back(c), value);
    }
    cases = std::move(varied);
  };
  vary(table.kind, [](AttentionCase& c, size_t n) { c.n_tokens = n; });
  vary(table.isa, [](AttentionCase& c, Isa isa) { c.isa = isa; });
  vary(table.threads, [](AttentionCase& c, size_t n) { c.n_threads = n; });
  vary(table.shape, [](AttentionCase& c, const Shape& shape) {
    c.n_heads = shape.n_heads;
    c.n_kv_heads = shape.n_kv_heads;
    c.head_dim = shape.head_dim;
  });
  vary(table.types, [](AttentionCase& c, const Types& types) {
    c.k_type = types.k;
    c.v_type = types.v;
  });
  vary(table.length, [](AttentionCase& c, size_t n) { c.n_positions = n; });
  vary(table.block, [](AttentionCase& c, size_t n) { c.block = n; });
  bool good = true;
  for (const AttentionCase& c : cases) good = report(c) && good;
  return good;
}

}  // namespace
}  // namespace godwit::cpu

int main(int argc, char** argv) {
  godwit::cpu::Table table;
  for (int i = 1; i < argc; ++i) {
    if (!table.take(argv[i])) {
      fmt::print(stderr, "'{}' chooses nothing; see the head of attention_bench.cpp\n", argv[i]);
      return 2;
    }
  }
  fmt::print("{}\n", godwit::processor_name());
  return godwit::cpu::report_all(table) ? 0 : 1;
}
