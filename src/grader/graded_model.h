// The models that the grader builds from seeds: shapes of models people run, with random weights
// scaled so that every part of a layer matters, and two one-layer models whose logits are known in
// closed form (counting, needle). Owns the list of tensors, their values as rules, and the Program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grader/value_rule.h"
#include "program/dense_shape.h"
#include "program/program.h"

namespace godwit::grader {

using GradedShape = program::DenseShape;

// program/dense_shape.h's, and "tiny" for tests on a CPU.
[[nodiscard]] std::vector<GradedShape> graded_shapes();
// nullptr for a name that is not among them.
[[nodiscard]] const GradedShape* find_graded_shape(std::string_view name);

struct GradedTensor {
  std::string name;  // as in GGUF files
  TensorType type = TensorType::kBF16;
  uint64_t rows = 0;
  uint64_t cols = 0;
  ValueRule rule;  // F32 tensors hold the rule's bf16 values, widened

  [[nodiscard]] uint64_t numbers() const { return rows * cols; }
};

// Where a layer's tensors lie in GradedModel::tensors; kAbsent for what the shape has not.
struct LayerTensors {
  static constexpr uint32_t kAbsent = ~0u;
  uint32_t attn_norm, q, k, v, o, ffn_norm, gate, up, down;
  uint32_t q_bias = kAbsent, k_bias = kAbsent, v_bias = kAbsent;
  uint32_t q_norm = kAbsent, k_norm = kAbsent;
};

struct GradedModel {
  GradedShape shape;
  std::vector<GradedTensor> tensors;  // indexed like program.weights
  std::vector<LayerTensors> layers;
  uint32_t embedding = 0;
  uint32_t output_norm = 0;
  uint32_t output = 0;  // == embedding where tied
  CacheRule cache;
  program::Program program;
};

// Random weights and cache of a seed, scaled for a history of n_positions.
[[nodiscard]] GradedModel make_random_model(const GradedShape& shape, uint64_t seed,
                                            uint64_t n_positions);
// One layer of the shape, attention alone; logits are the normed residual stream. `length` cached
// positions.
[[nodiscard]] GradedModel make_counting_model(const GradedShape& shape, uint64_t length);
[[nodiscard]] GradedModel make_needle_model(const GradedShape& shape, uint64_t seed);

// The token of a decode step, the same for every implementation.
[[nodiscard]] TokenId graded_token(const GradedModel& model, uint64_t seed, uint64_t step);

// Where the two closed-form models put things; shared with the tests that know their logits.
inline constexpr uint64_t kCountingEmbedDim = 33;    // of the residual stream: 1 before attention
inline constexpr uint64_t kCountingCurrentDim = 40;  // of each head: what the newest row lights
inline constexpr double kNeedleScore = 30.0;         // of a needle; e^30 drowns all others
inline constexpr float kNeedleKey = 16.0f;           // a needle's value in its two dimensions
// The pair of dimensions of a head that turns slowest.
struct NeedleDims {
  uint64_t first = 0;
  uint64_t second = 0;
};
[[nodiscard]] NeedleDims needle_dims(const GradedShape& shape);

}  // namespace godwit::grader
