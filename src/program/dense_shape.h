// Sizes of dense models that people run, by name, from their public configurations: numbers only.
// What the grader, the persistent kernel's bench and `synth` make models of. Reads no file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "program/step.h"

namespace godwit::program {

struct DenseShape {
  std::string_view name;
  uint32_t n_layers = 0;
  uint64_t dim = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint64_t ffn = 0;
  uint64_t n_vocab = 0;
  double rope_base = 500000.0;
  float epsilon = 1e-5f;
  RopePairs pairs = RopePairs::kAdjacent;
  bool tied = true;         // the output matrix is the embedding table
  bool qkv_biases = false;  // Qwen2
  bool head_norms = false;  // Qwen3

  [[nodiscard]] uint64_t q_width() const { return uint64_t{n_heads} * head_dim; }
  [[nodiscard]] uint64_t kv_width() const { return uint64_t{n_kv_heads} * head_dim; }
  // Numbers that one position leaves in the cache: of each layer K, then V.
  [[nodiscard]] uint64_t position_numbers() const { return uint64_t{n_layers} * 2 * kv_width(); }
};

[[nodiscard]] std::span<const DenseShape> dense_shapes();
// nullptr for a name that is not among them.
[[nodiscard]] const DenseShape* find_dense_shape(std::string_view name);

}  // namespace godwit::program
