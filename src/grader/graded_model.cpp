#include "grader/graded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "program/builder.h"

namespace godwit::grader {
namespace {

using program::RopePairs;

constexpr std::array kShapes = {
    GradedShape{.name = "llama-1b",
                .n_layers = 16,
                .dim = 2048,
                .n_heads = 32,
                .n_kv_heads = 8,
                .head_dim = 64,
                .ffn = 8192,
                .n_vocab = 128256},
    GradedShape{.name = "smollm2-135m",
                .n_layers = 30,
                .dim = 576,
                .n_heads = 9,
                .n_kv_heads = 3,
                .head_dim = 64,
                .ffn = 1536,
                .n_vocab = 49152,
                .rope_base = 100000.0},
    GradedShape{.name = "llama-3b",
                .n_layers = 28,
                .dim = 3072,
                .n_heads = 24,
                .n_kv_heads = 8,
                .head_dim = 128,
                .ffn = 8192,
                .n_vocab = 128256},
    GradedShape{.name = "llama-8b",
                .n_layers = 32,
                .dim = 4096,
                .n_heads = 32,
                .n_kv_heads = 8,
                .head_dim = 128,
                .ffn = 14336,
                .n_vocab = 128256,
                .tied = false},
    GradedShape{.name = "qwen2.5-1.5b",
                .n_layers = 28,
                .dim = 1536,
                .n_heads = 12,
                .n_kv_heads = 2,
                .head_dim = 128,
                .ffn = 8960,
                .n_vocab = 151936,
                .rope_base = 1000000.0,
                .epsilon = 1e-6f,
                .pairs = RopePairs::kHalves,
                .qkv_biases = true},
    GradedShape{.name = "qwen3-1.7b",
                .n_layers = 28,
                .dim = 2048,
                .n_heads = 16,
                .n_kv_heads = 8,
                .head_dim = 128,
                .ffn = 6144,
                .n_vocab = 151936,
                .rope_base = 1000000.0,
                .epsilon = 1e-6f,
                .pairs = RopePairs::kHalves,
                .head_norms = true},
    // For tests on a CPU.
    GradedShape{.name = "tiny",
                .n_layers = 16,
                .dim = 256,
                .n_heads = 4,
                .n_kv_heads = 2,
                .head_dim = 64,
                .ffn = 1024,
                .n_vocab = 1024},
};

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

program::Rope rope_of(const GradedShape& shape) {
  program::Rope rope{.n_rot = shape.head_dim, .frequencies = {}, .magnitude = 1.0};
  for (uint32_t i = 0; i < shape.head_dim / 2; ++i) {
    rope.frequencies.push_back(std::pow(shape.rope_base, -2.0 * i / shape.head_dim));
  }
  return rope;
}

// The Program of a model, as model/arch/dense.cpp writes it for files.
class ProgramMaker {
 public:
  explicit ProgramMaker(const GradedModel& model) : model_(model) {
    // In the order of the tensors, so that weight ids are tensor indices.
    for (const GradedTensor& t : model.tensors) {
      refs_.push_back(builder_.weight(t.name, t.type, t.rows, t.cols));
    }
  }

  program::Program make() {
    const GradedShape& s = model_.shape;
    x_ = builder_.buffer("x", s.dim);
    q_ = builder_.buffer("q", s.q_width());
    k_ = builder_.buffer("k", s.kv_width());
    v_ = builder_.buffer("v", s.kv_width());
    attended_ = builder_.buffer("attended", s.q_width());
    hidden_ = builder_.buffer("hidden", s.ffn);
    rope_ = builder_.rope(rope_of(s));
    builder_.step("embed", program::Embed{.table = refs_[model_.embedding], .out = x_});
    for (uint32_t i = 0; i < s.n_layers; ++i) layer(i);
    builder_.scope("");
    const program::BufferId logits = builder_.buffer("logits", s.n_vocab);
    builder_.step("output", program::Output{.in = x_,
                                            .norm = norm(model_.output_norm),
                                            .weight = refs_[model_.output],
                                            .logits = logits});
    program::Program& program = builder_.program();
    program.architecture = s.pairs == RopePairs::kAdjacent ? "llama" : "qwen";
    program.n_layers = s.n_layers;
    program.dim = s.dim;
    program.n_vocab = s.n_vocab;
    program.trained_context = 131072;
    program.logits = logits;
    return std::move(builder_).finish();
  }

 private:
  program::RmsNorm norm(uint32_t tensor) const {
    return {.weight = refs_[tensor], .epsilon = model_.shape.epsilon};
  }
  std::optional<program::WeightRef> optional(uint32_t tensor) const {
    if (tensor == LayerTensors::kAbsent) return std::nullopt;
    return refs_[tensor];
  }
  std::optional<program::RmsNorm> optional_norm(uint32_t tensor) const {
    if (tensor == LayerTensors::kAbsent) return std::nullopt;
    return norm(tensor);
  }

  void layer(uint32_t index) {
    const GradedShape& s = model_.shape;
    const LayerTensors& t = model_.layers[index];
    builder_.scope(fmt::format("blk.{}.", index));
    builder_.step(
        "qkv", program::NormProject{
                   .in = x_,
                   .norm = norm(t.attn_norm),
                   .projections = {{.weight = refs_[t.q], .bias = optional(t.q_bias), .out = q_},
                                   {.weight = refs_[t.k], .bias = optional(t.k_bias), .out = k_},
                                   {.weight = refs_[t.v], .bias = optional(t.v_bias), .out = v_}}});
    builder_.step("attend", program::Attend{.q = q_,
                                            .k = k_,
                                            .v = v_,
                                            .out = attended_,
                                            .kv = builder_.kv(s.n_kv_heads, s.head_dim),
                                            .rope = rope_,
                                            .pairs = s.pairs,
                                            .n_heads = s.n_heads,
                                            .n_kv_heads = s.n_kv_heads,
                                            .head_dim = s.head_dim,
                                            .scale = static_cast<float>(
                                                1.0 / std::sqrt(static_cast<double>(s.head_dim))),
                                            .q_norm = optional_norm(t.q_norm),
                                            .k_norm = optional_norm(t.k_norm)});
    builder_.step("attn_out",
                  program::ProjectAdd{.in = attended_, .weight = refs_[t.o], .target = x_});
    builder_.step("gated_up", program::GatedUp{.in = x_,
                                               .norm = norm(t.ffn_norm),
                                               .gate = refs_[t.gate],
                                               .up = refs_[t.up],
                                               .out = hidden_});
    builder_.step("down",
                  program::ProjectAdd{.in = hidden_, .weight = refs_[t.down], .target = x_});
  }

  const GradedModel& model_;
  program::ProgramBuilder builder_;
  std::vector<program::WeightRef> refs_;
  program::BufferId x_, q_, k_, v_, attended_, hidden_;
  program::RopeRef rope_;
};

GradedModel finish(ModelMaker& maker) {
  GradedModel model = std::move(maker.model());
  model.program = ProgramMaker(model).make();
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

std::span<const GradedShape> graded_shapes() { return kShapes; }

const GradedShape* find_graded_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapes, name, &GradedShape::name);
  return found == kShapes.end() ? nullptr : &*found;
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
