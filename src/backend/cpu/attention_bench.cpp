// godwit_attention_bench [words...]: attention over KV caches, decode in GB/s of keys and values
// and in percent of the read bandwidth measured in the same rounds, prefill of 512 tokens in G
// multiply-adds/s. Words narrow it down: an instruction set (avx2), a pair of types (q8_0/q4_0), a
// head width (128), a length (16K), decode or prefill; several of a kind add up.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/attention.h"
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
  Axis<size_t> kind = {.all = {{"decode", 1}, {"prefill", 512}}};

  bool take(std::string_view word) {
    return isa.take(word) || types.take(word) || shape.take(word) || length.take(word) ||
           kind.take(word);
  }
};

// False where it cannot be measured.
bool report(const AttentionCase& c) {
  const Result<AttentionSpeed> speed = measure_attention(c);
  if (!speed) {
    fmt::print(stderr, "{}\n", speed.error().message);
    return false;
  }
  fmt::print("{:>2}/{:<2} x {:<4} {:>7} + {:<4} {:>5}/{:<5} {:<11} {:>10.1f} us  {}\n", c.n_heads,
             c.n_kv_heads, c.head_dim, c.n_positions - c.n_tokens, c.n_tokens,
             lower(tensor_type_name(c.k_type)), lower(tensor_type_name(c.v_type)), isa_name(c.isa),
             speed->us,
             c.n_tokens == 1 ? fmt::format("{:6.1f} GB/s of {:6.1f}: {:3.0f} %", speed->gbps,
                                           speed->read_gbps, speed->share * 100)
                             : fmt::format("{:6.0f} GMAC/s", speed->gmacs));
  return true;
}

bool report_all(const Table& table, size_t n_threads) {
  bool good = true;
  for (const auto& kind : table.kind.wanted()) {
    for (const auto& isa : table.isa.wanted()) {
      for (const auto& shape : table.shape.wanted()) {
        for (const auto& types : table.types.wanted()) {
          for (const auto& length : table.length.wanted()) {
            good = report({.n_heads = shape.second.n_heads,
                           .n_kv_heads = shape.second.n_kv_heads,
                           .head_dim = shape.second.head_dim,
                           .n_positions = length.second,
                           .n_tokens = kind.second,
                           .k_type = types.second.k,
                           .v_type = types.second.v,
                           .isa = isa.second,
                           .n_threads = n_threads}) &&
                   good;
          }
        }
      }
    }
  }
  return good;
}

}  // namespace
}  // namespace godwit::cpu

int main(int argc, char** argv) {
  godwit::cpu::Table table;
  for (int i = 1; i < argc; ++i) {
    if (!table.take(argv[i])) {
      fmt::print(stderr, "'{}' is no instruction set, pair of types, head width, length or kind\n",
                 argv[i]);
      return 2;
    }
  }
  const size_t n_threads = std::max(1u, std::thread::hardware_concurrency());
  fmt::print("{}, {} threads\n", godwit::processor_name(), n_threads);
  return godwit::cpu::report_all(table, n_threads) ? 0 : 1;
}
