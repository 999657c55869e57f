#include "backend/cuda/persistent/bench/program.h"

#include "base/check.h"
#include "program/builder.h"
#include "program/dense_program.h"

namespace godwit::cuda::persistent {

std::vector<BenchSpec> bench_specs() {
  std::vector<BenchSpec> specs;
  for (const program::DenseShape& shape : program::dense_shapes()) {
    specs.push_back({.name = std::string(shape.name), .shape = shape});
    if (shape.name == "smollm2-135m") specs.back().type = TensorType::kF16;
  }
  specs.push_back({.name = "tiny",
                   .shape = {.name = "tiny",
                             .n_layers = 2,
                             .dim = 128,
                             .n_heads = 2,
                             .n_kv_heads = 1,
                             .head_dim = 64,
                             .ffn = 256,
                             .n_vocab = 300}});
  return specs;
}

BenchSpec bench_spec(std::string_view name) {
  for (const BenchSpec& spec : bench_specs()) {
    if (spec.name == name) return spec;
  }
  check(false, "bench_spec: there is no such shape");
  return {};
}

program::Program bench_program(const BenchSpec& spec) {
  const program::DenseShape& s = spec.shape;
  program::ProgramBuilder b;
  const auto vector = [&](const std::string& name, uint64_t n) {
    return b.weight(name, TensorType::kF32, 1, n);
  };
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    return b.weight(name, spec.type, rows, cols);
  };
  program::DenseWeights weights;
  weights.embedding = matrix("embd", s.n_vocab, s.dim);
  for (uint32_t l = 0; l < s.n_layers; ++l) {
    const std::string at = "blk." + std::to_string(l) + ".";
    program::DenseLayerWeights w{.attn_norm = vector(at + "attn_norm", s.dim),
                                 .q = matrix(at + "q", s.q_width(), s.dim),
                                 .k = matrix(at + "k", s.kv_width(), s.dim),
                                 .v = matrix(at + "v", s.kv_width(), s.dim),
                                 .o = matrix(at + "o", s.dim, s.q_width()),
                                 .ffn_norm = vector(at + "ffn_norm", s.dim),
                                 .gate = matrix(at + "gate", s.ffn, s.dim),
                                 .up = matrix(at + "up", s.ffn, s.dim),
                                 .down = matrix(at + "down", s.dim, s.ffn)};
    if (s.qkv_biases) {
      w.q_bias = vector(at + "q.bias", s.q_width());
      w.k_bias = vector(at + "k.bias", s.kv_width());
      w.v_bias = vector(at + "v.bias", s.kv_width());
    }
    if (s.head_norms) {
      w.q_norm = vector(at + "q_norm", s.head_dim);
      w.k_norm = vector(at + "k_norm", s.head_dim);
    }
    weights.layers.push_back(w);
  }
  weights.output_norm = vector("output_norm", s.dim);
  weights.output = s.tied ? weights.embedding : matrix("output", s.n_vocab, s.dim);
  return program::dense_program(s, weights, std::move(b));
}

}  // namespace godwit::cuda::persistent
