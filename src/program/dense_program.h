// The Program of a dense shape whose weights the caller has declared: what model/arch/dense.cpp
// writes for a file, without the file. For models made of random numbers.
#pragma once

#include <optional>
#include <vector>

#include "program/builder.h"
#include "program/dense_shape.h"

namespace godwit::program {

// Biases and norms of heads as the shape has them.
struct DenseLayerWeights {
  WeightRef attn_norm, q, k, v, o, ffn_norm, gate, up, down;
  std::optional<WeightRef> q_bias = {}, k_bias = {}, v_bias = {};
  std::optional<WeightRef> q_norm = {}, k_norm = {};
};

struct DenseWeights {
  WeightRef embedding;
  WeightRef output_norm;
  WeightRef output;  // the embedding where tied
  std::vector<DenseLayerWeights> layers;
};

// `builder` holds the weights and nothing else.
[[nodiscard]] Program dense_program(const DenseShape& shape, const DenseWeights& weights,
                                    ProgramBuilder builder);

}  // namespace godwit::program
