// Dense Programs by their dimensions, for megakernel_bench and the tests of schedules: what
// model/arch/dense.cpp writes for a file, without the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"
#include "program/program.h"

namespace godwit::cuda::persistent {

struct BenchSpec {
  std::string name;
  uint32_t n_layers = 0;
  uint32_t dim = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;
  uint32_t n_vocab = 0;
  TensorType type = TensorType::kBF16;
  TensorType kv_type = TensorType::kBF16;
  program::RopePairs pairs = program::RopePairs::kAdjacent;
  bool biases = false;
  bool head_norms = false;
  uint64_t keep_bytes = 43'000'000;  // of weights, in the L2
};

// The shapes that the kernel was made for, whole, and a tiny one.
[[nodiscard]] std::vector<BenchSpec> bench_specs();
// One of them; its name must be known.
[[nodiscard]] BenchSpec bench_spec(std::string_view name);

[[nodiscard]] program::Program bench_program(const BenchSpec& spec);

}  // namespace godwit::cuda::persistent
