// Time of the chunked delta rule: one key head with two value heads of 128 x 128, rows one by one
// and in whole chunks, on one core. `godwit_delta_bench [generic|avx2|avx512vnni]`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <vector>

#include "backend/cpu/delta_chunk.h"
#include "backend/cpu/vector_ops.h"
#include "base/random.h"

namespace godwit::cpu {
namespace {

constexpr size_t kDim = 128;
constexpr size_t kValueHeads = 2;
constexpr size_t kKeyHeads = 16;  // each with a state of its own, as a layer has
constexpr size_t kRows = 512;

std::vector<float> numbers(size_t n, double spread) {
  RandomStream random(n);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(random.bell() * spread);
  return out;
}

struct State {
  std::vector<float> keys = std::vector<float>(kDim * kDeltaChunk);
  std::vector<float> matrix = numbers(kValueHeads * kDim * kDim, 0.1);
  std::vector<float> changes = std::vector<float>(kValueHeads * kDeltaChunk * kDim);
  std::vector<double> log_decays = std::vector<double>(kValueHeads * kDeltaChunk);
};

// Microseconds per row of a layer.
double time_rows(const VectorOps& ops, size_t group) {
  const std::vector<float> keys_queries = numbers(2 * kDeltaChunk * kDim, 1.0 / std::sqrt(kDim));
  const std::vector<float> values = numbers(kDeltaChunk * kDim, 1.0);
  const std::vector<double> log_decays(kDeltaChunk, -0.05);
  const std::vector<float> betas(kDeltaChunk, 0.5f);
  std::vector<float> dots(2 * kDeltaChunk * kDeltaChunk);
  std::vector<float> scratch(delta_scratch_floats(kDim));
  std::vector<float> out(kDeltaChunk * kDim);
  std::vector<State> states(kKeyHeads);
  const auto start = std::chrono::steady_clock::now();
  const auto walk = [&](State& state, size_t t, size_t n) {
    const DeltaRows rows{.keys_queries = keys_queries.data(),
                         .dots = dots.data(),
                         .slot = t % kDeltaChunk,
                         .n = n,
                         .d = kDim};
    join_keys(ops, rows, state.keys.data(), dots.data());
    for (size_t h = 0; h < kValueHeads; ++h) {
      walk_delta_rows(ops, rows,
                      {.v = values.data(),
                       .v_stride = kDim,
                       .log_decays = log_decays.data(),
                       .betas = betas.data()},
                      {.keys = state.keys.data(),
                       .matrix = state.matrix.data() + h * kDim * kDim,
                       .changes = state.changes.data() + h * kDeltaChunk * kDim,
                       .log_decays = state.log_decays.data() + h * kDeltaChunk},
                      scratch.data(), out.data(), kDim);
    }
  };
  if (group == 1) {  // every row goes through all heads before the next
    for (size_t t = 0; t < kRows; ++t) {
      for (State& state : states) walk(state, t, 1);
    }
  } else {
    for (State& state : states) {
      for (size_t t = 0; t < kRows; t += group) walk(state, t, group);
    }
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count() / kRows;
}

int run(std::string_view wanted) {
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa > detected_isa() || (!wanted.empty() && wanted != isa_name(isa))) continue;
    double alone = 1e9;
    double together = 1e9;
    for (int round = 0; round < 7; ++round) {
      alone = std::min(alone, time_rows(vector_ops(isa), 1));
      together = std::min(together, time_rows(vector_ops(isa), kDeltaChunk));
    }
    fmt::print("{}: {:.1f} us a row of a layer one by one, {:.1f} in chunks of {}\n", isa_name(isa),
               alone, together, kDeltaChunk);
  }
  return 0;
}

}  // namespace
}  // namespace godwit::cpu

int main(int argc, char** argv) { return godwit::cpu::run(argc > 1 ? argv[1] : ""); }
