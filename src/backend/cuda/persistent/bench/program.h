// Dense Programs by their dimensions, for megakernel_bench and the tests of schedules: what
// model/arch/dense.cpp writes for a file, without the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"
#include "program/dense_shape.h"
#include "program/program.h"

namespace godwit::cuda::persistent {

struct BenchSpec {
  std::string name;
  program::DenseShape shape;
  TensorType type = TensorType::kBF16;
  TensorType kv_type = TensorType::kBF16;
  uint64_t keep_bytes = 43'000'000;  // of weights, in the L2
};

// The shapes of program/dense_shape.h, whole, and a tiny one.
[[nodiscard]] std::vector<BenchSpec> bench_specs();
// One of them; its name must be known.
[[nodiscard]] BenchSpec bench_spec(std::string_view name);

[[nodiscard]] program::Program bench_program(const BenchSpec& spec);

}  // namespace godwit::cuda::persistent
