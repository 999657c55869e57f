#include "grader/graded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/builder.h"
#include "program/dense_program.h"

namespace godwit::grader {
namespace {

using program::RopePairs;

// For tests on a CPU.
constexpr GradedShape kTiny{.name = "tiny",
                            .n_layers = 16,
                            .dim = 256,
                            .n_heads = 4,
                            .n_kv_heads = 2,
                            .head_dim = 64,
                            .ffn = 1024,
                            .n_vocab = 1024};

// Standard deviations at a layer's seams, for inputs of root mean square 1. Chosen so that E and
// the margins of the dropped features come out as docs/GRADER.md says. Only the ratio of embedding
// and shares matters to them; the embedding's size makes logits of deviation 2 or so where it is
// the output matrix too. Scores of deviation kKey make attention broad.
constexpr double kEmbedding = 0.05;
constexpr double kQuery = 1.0;
constexpr double kKey = 0.48;
constexpr double kValue = 1.0;
constexpr double kAttentionShare = 0.01;   // what attention adds to the residual stream
constexpr double kFeedForwardShare = 0.1;  // likewise the feed-forward layer
constexpr double kGatedDeviation = 0.6;    // of silu(a) * b, a and b normal

// Half the width of a uniform distribution with this deviation, as a number of few bits.
float half_width(double deviation) {
  return static_cast<float>(std::round(deviation * std::sqrt(3.0) * 0x1p20) * 0x1p-20);
}

ValueRule constant(float value) { return {.kind = ValueRule::Kind::kConstant, .offset = value}; }

class ModelMaker {
 public:
  ModelMaker(const GradedShape& shape, uint64_t seed) : seed_(seed) { model_.shape = shape; }

  uint32_t add(std::string name, TensorType type, uint64_t rows, uint64_t cols, ValueRule rule) {
    const auto id = static_cast<uint32_t>(model_.tensors.size());
    rule.seed = random_bits(seed_, id);
    model_.tensors.push_back(
        {.name = std::move(name), .type = type, .rows = rows, .cols = cols, .rule = rule});
    return id;
  }
  uint32_t matrix(std::string name, uint64_t rows, uint64_t cols, ValueRule rule) {
    return add(std::move(name), TensorType::kBF16, rows, cols, rule);
  }
  uint32_t random_matrix(std::string name, uint64_t rows, uint64_t cols, double gain) {
    const double deviation = gain / std::sqrt(static_cast<double>(cols));
    return matrix(std::move(name), rows, cols,
                  {.kind = ValueRule::Kind::kUniform, .half_width = half_width(deviation)});
  }
  // Norm weights: in 1 -+ 0.25.
  uint32_t norm(std::string name, uint64_t width) {
    return add(std::move(name), TensorType::kF32, 1, width,
               {.kind = ValueRule::Kind::kUniform, .half_width = 0.25f, .offset = 1.0f});
  }
  uint32_t ones(std::string name, uint64_t width) {
    return add(std::move(name), TensorType::kF32, 1, width, constant(1.0f));
  }
  uint32_t bias(std::string name, uint64_t width, double deviation) {
    return add(std::move(name), TensorType::kF32, 1, width,
               {.kind = ValueRule::Kind::kUniform, .half_width = half_width(deviation)});
  }

  GradedModel& model() { return model_; }

 private:
  GradedModel model_;
  uint64_t seed_;
};

void add_random_layer(ModelMaker& maker, uint32_t index, double attention_gain) {
  const GradedShape& s = maker.model().shape;
  const std::string prefix = fmt::format("blk.{}.", index);
  LayerTensors t{};
  t.attn_norm = maker.norm(prefix + "attn_norm.weight", s.dim);
  t.q = maker.random_matrix(prefix + "attn_q.weight", s.q_width(), s.dim, kQuery);
  t.k = maker.random_matrix(prefix + "attn_k.weight", s.kv_width(), s.dim, kKey);
  t.v = maker.random_matrix(prefix + "attn_v.weight", s.kv_width(), s.dim, kValue);
  t.o = maker.random_matrix(prefix + "attn_output.weight", s.dim, s.q_width(), attention_gain);
  t.ffn_norm = maker.norm(prefix + "ffn_norm.weight", s.dim);
  t.gate = maker.random_matrix(prefix + "ffn_gate.weight", s.ffn, s.dim, 1.0);
  t.up = maker.random_matrix(prefix + "ffn_up.weight", s.ffn, s.dim, 1.0);
  t.down = maker.random_matrix(prefix + "ffn_down.weight", s.dim, s.ffn,
                               kFeedForwardShare / kGatedDeviation);
  if (s.qkv_biases) {
    t.q_bias = maker.bias(prefix + "attn_q.bias", s.q_width(), 0.25);
    t.k_bias = maker.bias(prefix + "attn_k.bias", s.kv_width(), 0.125);
    t.v_bias = maker.bias(prefix + "attn_v.bias", s.kv_width(), 0.25);
  }
  if (s.head_norms) {
    t.q_norm = maker.norm(prefix + "attn_q_norm.weight", s.head_dim);
    t.k_norm = maker.norm(prefix + "attn_k_norm.weight", s.head_dim);
  }
  maker.model().layers.push_back(t);
}

// In the order of the tensors, so that weight ids are tensor indices.
program::Program program_of(const GradedModel& model) {
  program::ProgramBuilder builder;
  std::vector<program::WeightRef> refs;
  for (const GradedTensor& t : model.tensors) {
    refs.push_back(builder.weight(t.name, t.type, t.rows, t.cols));
  }
  const auto optional = [&](uint32_t tensor) -> std::optional<program::WeightRef> {
    if (tensor == LayerTensors::kAbsent) return std::nullopt;
    return refs[tensor];
  };
  program::DenseWeights weights{.embedding = refs[model.embedding],
                                .output_norm = refs[model.output_norm],
                                .output = refs[model.output],
                                .layers = {}};
  for (const LayerTensors& t : model.layers) {
    weights.layers.push_back({.attn_norm = refs[t.attn_norm],
                              .q = refs[t.q],
                              .k = refs[t.k],
                              .v = refs[t.v],
                              .o = refs[t.o],
                              .ffn_norm = refs[t.ffn_norm],
                              .gate = refs[t.gate],
                              .up = refs[t.up],
                              .down = refs[t.down],
                              .q_bias = optional(t.q_bias),
                              .k_bias = optional(t.k_bias),
                              .v_bias = optional(t.v_bias),
                              .q_norm = optional(t.q_norm),
                              .k_norm = optional(t.k_norm)});
  }
  return program::dense_program(model.shape, weights, std::move(builder));
}

GradedModel finish(ModelMaker& maker) {
  GradedModel model = std::move(maker.model());
  model.program = program_of(model);
  return model;
}

// Rules of the one layer of a closed-form model.
struct ClosedForm {
  ValueRule embedding;
  ValueRule q, k, v;
};

// Attention's output becomes the residual stream as it is, feed-forward adds nothing, and logits
// are the normed stream.
GradedModel make_closed_form(GradedShape shape, uint64_t seed, const ClosedForm& rules) {
  shape.n_layers = 1;
  shape.n_vocab = shape.dim;
  shape.tied = false;
  shape.qkv_biases = false;
  shape.head_norms = false;
  ModelMaker maker(shape, seed);
  const ValueRule identity{.kind = ValueRule::Kind::kIdentity, .offset = 1.0f};
  GradedModel& model = maker.model();
  model.embedding = maker.matrix("token_embd.weight", shape.n_vocab, shape.dim, rules.embedding);
  model.output_norm = maker.ones("output_norm.weight", shape.dim);
  model.output = maker.matrix("output.weight", shape.n_vocab, shape.dim, identity);
  LayerTensors t{};
  t.attn_norm = maker.ones("blk.0.attn_norm.weight", shape.dim);
  t.q = maker.matrix("blk.0.attn_q.weight", shape.q_width(), shape.dim, rules.q);
  t.k = maker.matrix("blk.0.attn_k.weight", shape.kv_width(), shape.dim, rules.k);
  t.v = maker.matrix("blk.0.attn_v.weight", shape.kv_width(), shape.dim, rules.v);
  t.o = maker.matrix("blk.0.attn_output.weight", shape.dim, shape.q_width(), identity);
  t.ffn_norm = maker.ones("blk.0.ffn_norm.weight", shape.dim);
  t.gate = maker.matrix("blk.0.ffn_gate.weight", shape.ffn, shape.dim, constant(0.0f));
  t.up = maker.matrix("blk.0.ffn_up.weight", shape.ffn, shape.dim, constant(0.0f));
  t.down = maker.matrix("blk.0.ffn_down.weight", shape.dim, shape.ffn, constant(0.0f));
  model.layers.push_back(t);
  return finish(maker);
}

}  // namespace

std::vector<GradedShape> graded_shapes() {
  const auto dense = program::dense_shapes();
  std::vector<GradedShape> shapes(dense.begin(), dense.end());
  shapes.push_back(kTiny);
  return shapes;
}

const GradedShape* find_graded_shape(std::string_view name) {
  return name == kTiny.name ? &kTiny : program::find_dense_shape(name);
}

GradedModel make_random_model(const GradedShape& shape, uint64_t seed, uint64_t n_positions) {
  ModelMaker maker(shape, seed);
  GradedModel& model = maker.model();
  const double columns = static_cast<double>(shape.dim);
  // A tied table is read twice: as rows of deviation kEmbedding, and as logits; the norm between
  // makes the scale of the first immaterial to the second.
  model.embedding = maker.random_matrix("token_embd.weight", shape.n_vocab, shape.dim,
                                        kEmbedding * std::sqrt(columns));
  model.output_norm = maker.norm("output_norm.weight", shape.dim);
  model.output = shape.tied ? model.embedding
                            : maker.random_matrix("output.weight", shape.n_vocab, shape.dim,
                                                  kEmbedding * std::sqrt(columns));
  // Over n positions with scores of deviation s, attention averages n exp(-s^2) values.
  const double n_effective =
      std::max(1.0, static_cast<double>(n_positions) * std::exp(-kKey * kKey));
  const double attention_gain = kAttentionShare / kValue * std::sqrt(n_effective);
  for (uint32_t i = 0; i < shape.n_layers; ++i) add_random_layer(maker, i, attention_gain);
  model.cache = {.kind = CacheRule::Kind::kRandom,
                 .seed = seed,
                 .k_half_width = half_width(kKey),
                 .v_half_width = half_width(kValue)};
  return finish(maker);
}

GradedModel make_counting_model(const GradedShape& shape, uint64_t length) {
  const uint64_t dim = kCountingCurrentDim % shape.head_dim;
  ClosedForm rules{
      .embedding = {.kind = ValueRule::Kind::kConstant},
      .q = {.kind = ValueRule::Kind::kUniform, .half_width = 0.0625f},
      .k = constant(0.0f),
      // The newest row's values: n is sqrt(dim) in one place, so this is 1 (rounded to bf16).
      .v = {.kind = ValueRule::Kind::kHeadColumn,
            .offset = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.dim))),
            .head_dim = shape.head_dim,
            .first = kCountingEmbedDim,
            .second = dim,
            .third = dim}};
  // Token 0 lights one dimension, which attention leaves alone.
  rules.embedding = {
      .kind = ValueRule::Kind::kStaircase, .offset = 1.0f, .first = kCountingEmbedDim};
  GradedModel model = make_closed_form(shape, 1, rules);
  model.cache = {.kind = CacheRule::Kind::kCounting, .length = length};
  return model;
}

NeedleDims needle_dims(const GradedShape& shape) {
  const uint64_t last = shape.head_dim - 1;
  if (shape.pairs == RopePairs::kAdjacent) return {.first = last - 1, .second = last};
  return {.first = shape.head_dim / 2 - 1, .second = last};
}

GradedModel make_needle_model(const GradedShape& shape, uint64_t seed) {
  const NeedleDims dims = needle_dims(shape);
  const auto column = [&](uint64_t first, float value) {
    return ValueRule{.kind = ValueRule::Kind::kHeadColumn,
                     .offset = value,
                     .head_dim = shape.head_dim,
                     .first = first,
                     .second = dims.first,
                     .third = dims.second};
  };
  // Token 0 lights dimension 0 and asks; token 1 lights 0 and 1, and is its own needle. A lone 1
  // becomes sqrt(dim) by the norm; q . k of a needle is to be kNeedleScore.
  const double lit = std::sqrt(static_cast<double>(shape.dim));
  const double query = kNeedleScore * std::sqrt(static_cast<double>(shape.head_dim)) /
                       (2.0 * static_cast<double>(kNeedleKey));
  const ClosedForm rules{
      .embedding = {.kind = ValueRule::Kind::kStaircase, .offset = 1.0f, .first = 0},
      .q = column(0, static_cast<float>(query / lit)),
      .k = column(1, static_cast<float>(2.0 * static_cast<double>(kNeedleKey) / lit)),
      .v = {.kind = ValueRule::Kind::kUniform, .half_width = 0.0625f}};
  GradedModel model = make_closed_form(shape, seed, rules);
  model.cache = {.kind = CacheRule::Kind::kNeedles, .seed = seed, .v_half_width = 1.0f};
  return model;
}

TokenId graded_token(const GradedModel& model, uint64_t seed, uint64_t step) {
  // Beyond the seeds of tensors and cache.
  const uint64_t bits = random_bits(random_bits(seed, 2 * kCacheSeedBase), step);
  return {static_cast<int32_t>(bits % model.shape.n_vocab)};
}

}  // namespace godwit::grader
