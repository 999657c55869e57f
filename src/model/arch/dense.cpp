#include "model/arch/dense.h"

#include <cmath>
#include <string>

#include "model/rope.h"

namespace godwit::model {
namespace {

using program::BufferId;
using program::ProgramBuilder;
using program::RmsNorm;
using program::RopeRef;

struct Buffers {
  BufferId x;         // [dim], the residual stream
  BufferId q;         // [n_heads, head_dim]
  BufferId k;         // [n_kv_heads, head_dim]
  BufferId v;         // [n_kv_heads, head_dim]
  BufferId attended;  // [n_heads, head_dim]
  BufferId hidden;    // [ffn]
};

// The frequency factors of LongRoPE for the positions that sequences will reach, or the file's
// only ones.
std::vector<float> rope_factors(const Config& config, WeightFinder& weights) {
  const uint64_t n = config.rope.n_rot / 2;
  std::vector<float> plain = weights.values("rope_freqs.weight", n);
  const std::vector<float> beyond = weights.values("rope_factors_long.weight", n);
  const std::vector<float> within = weights.values("rope_factors_short.weight", n);
  if (!plain.empty()) return plain;
  return config.n_positions > config.rope.original_context ? beyond : within;
}

bool is_nth(uint32_t layer, uint32_t period) { return period != 0 && layer % period == period - 1; }

class DenseBuilder {
 public:
  DenseBuilder(const Config& config, const DenseTraits& traits, WeightFinder& weights,
               ProgramBuilder& builder)
      : config_(config), traits_(traits), weights_(weights), builder_(builder) {
    buffers_ = {.x = builder.buffer("x", config.dim),
                .q = builder.buffer("q", q_width()),
                .k = builder.buffer("k", kv_width()),
                .v = builder.buffer("v", kv_width()),
                .attended = builder.buffer("attended", q_width()),
                .hidden = builder.buffer("hidden", config.ffn)};
    rope_ = builder.rope(make_rope(config.rope, rope_factors(config, weights)));
    if (traits.window_rope && config.window.length != 0) {
      window_rope_ = builder.rope(make_rope(*traits.window_rope, {}));
    }
    if (traits.rope_period != 0) no_rope_ = builder.rope({});
  }

  void embed(uint64_t n_vocab) {
    builder_.step(
        "embed", program::Embed{.table = weights_.matrix("token_embd.weight", n_vocab, config_.dim),
                                .out = buffers_.x,
                                .scale = static_cast<float>(traits_.embedding_scale)});
  }

  void layer(uint32_t index) {
    const std::string prefix = fmt::format("blk.{}.", index);
    builder_.scope(prefix);
    builder_.step("qkv", program::NormProject{.in = buffers_.x,
                                              .norm = norm_before(prefix + "attn_norm.weight"),
                                              .projections = projections(prefix)});
    builder_.step("attend", attend(prefix, index));
    builder_.step("attn_out", add(prefix + "attn_output", prefix + "post_attention_norm.weight",
                                  buffers_.attended, q_width()));
    builder_.step("gated_up", gated_up(prefix));
    builder_.step("down", add(prefix + "ffn_down", prefix + "post_ffw_norm.weight", buffers_.hidden,
                              config_.ffn));
  }

  void output(uint64_t n_vocab) {
    builder_.scope("");
    // A file without an output matrix ties it to the embedding.
    const char* name = weights_.has("output.weight") ? "output.weight" : "token_embd.weight";
    const BufferId logits = builder_.buffer("logits", n_vocab);
    builder_.step("output",
                  program::Output{.in = buffers_.x,
                                  .norm = norm("output_norm.weight", config_.dim),
                                  .weight = weights_.matrix(name, n_vocab, config_.dim),
                                  .bias = weights_.optional_vector("output.bias", n_vocab),
                                  .scale = static_cast<float>(traits_.logit_scale),
                                  .softcap = static_cast<float>(traits_.logit_softcap),
                                  .logits = logits});
    builder_.program().logits = logits;
  }

 private:
  [[nodiscard]] uint64_t q_width() const { return uint64_t{config_.n_heads} * config_.head_dim; }
  [[nodiscard]] uint64_t kv_width() const {
    return uint64_t{config_.n_kv_heads} * config_.head_dim;
  }

  RmsNorm norm(const std::string& name, uint64_t width) {
    return {.weight = weights_.vector(name, width), .epsilon = config_.norm_epsilon};
  }
  std::optional<RmsNorm> norm_before(const std::string& name) {
    if (traits_.norms == NormPlacement::kAfter) return std::nullopt;
    return norm(name, config_.dim);
  }
  std::optional<RmsNorm> norm_after(const std::string& name) {
    if (traits_.norms == NormPlacement::kBefore) return std::nullopt;
    return norm(name, config_.dim);
  }
  std::optional<RmsNorm> head_norm(const std::string& name, uint64_t width) {
    if (traits_.head_norm == HeadNorm::kNone) return std::nullopt;
    return norm(name, traits_.head_norm == HeadNorm::kEachHead ? config_.head_dim : width);
  }

  std::vector<program::Projection> projections(const std::string& prefix) {
    if (weights_.has(prefix + "attn_qkv.weight")) return fused_projections(prefix + "attn_qkv");
    return {project(prefix + "attn_q", buffers_.q, q_width()),
            project(prefix + "attn_k", buffers_.k, kv_width()),
            project(prefix + "attn_v", buffers_.v, kv_width())};
  }

  // q's rows, then k's, then v's, in one tensor.
  std::vector<program::Projection> fused_projections(const std::string& name) {
    const uint64_t rows = q_width() + 2 * kv_width();
    const auto part = [&](BufferId out, uint64_t first, uint64_t n) {
      const WeightFinder::Slice slice{.first = first, .n = n};
      return program::Projection{
          .weight = weights_.matrix_rows(name + ".weight", slice, rows, config_.dim),
          .bias = weights_.optional_part(name + ".bias", slice, rows),
          .out = out};
    };
    return {part(buffers_.q, 0, q_width()), part(buffers_.k, q_width(), kv_width()),
            part(buffers_.v, q_width() + kv_width(), kv_width())};
  }

  program::Projection project(const std::string& name, BufferId out, uint64_t rows) {
    return {.weight = weights_.matrix(name + ".weight", rows, config_.dim),
            .bias = weights_.optional_vector(name + ".bias", rows),
            .out = out};
  }

  [[nodiscard]] bool has_window(uint32_t layer) const {
    return config_.window.covers(layer, traits_.window_period);
  }

  [[nodiscard]] RopeRef rope_of(uint32_t layer) const {
    if (no_rope_ && is_nth(layer, traits_.rope_period)) return *no_rope_;
    return window_rope_ && has_window(layer) ? *window_rope_ : rope_;
  }

  program::Attend attend(const std::string& prefix, uint32_t layer) {
    const double scale = traits_.attention_scale != 0.0
                             ? traits_.attention_scale
                             : 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
    return {.q = buffers_.q,
            .k = buffers_.k,
            .v = buffers_.v,
            .out = buffers_.attended,
            .kv = builder_.kv(config_.n_kv_heads, config_.head_dim),
            .rope = rope_of(layer),
            .pairs = traits_.rope_pairs,
            .n_heads = config_.n_heads,
            .n_kv_heads = config_.n_kv_heads,
            .head_dim = config_.head_dim,
            .scale = static_cast<float>(scale),
            .q_norm = head_norm(prefix + "attn_q_norm.weight", q_width()),
            .k_norm = head_norm(prefix + "attn_k_norm.weight", kv_width()),
            .q_scale = traits_.query_scale,
            .softcap = static_cast<float>(traits_.attention_softcap),
            .window = has_window(layer) ? config_.window.length : 0};
  }

  program::GatedUp gated_up(const std::string& prefix) {
    const std::string gate = prefix + "ffn_gate";
    const std::string up = prefix + "ffn_up";
    const uint64_t ffn = config_.ffn;
    program::GatedUp step{.in = buffers_.x,
                          .norm = norm_before(prefix + "ffn_norm.weight"),
                          .gate = {},
                          .gate_bias = {},
                          .up = {},
                          .up_bias = {},
                          .activation = traits_.activation,
                          .out = buffers_.hidden};
    if (traits_.gate == GateTensor::kInUp) {
      step.gate = weights_.matrix_rows(up + ".weight", {0, ffn}, 2 * ffn, config_.dim);
      step.up = weights_.matrix_rows(up + ".weight", {ffn, ffn}, 2 * ffn, config_.dim);
      return step;
    }
    step.gate = weights_.matrix(gate + ".weight", ffn, config_.dim);
    step.gate_bias = weights_.optional_vector(gate + ".bias", ffn);
    step.up = weights_.matrix(up + ".weight", ffn, config_.dim);
    step.up_bias = weights_.optional_vector(up + ".bias", ffn);
    return step;
  }

  program::ProjectAdd add(const std::string& name, const std::string& norm, BufferId in,
                          uint64_t cols) {
    return {.in = in,
            .weight = weights_.matrix(name + ".weight", config_.dim, cols),
            .bias = weights_.optional_vector(name + ".bias", config_.dim),
            .norm = norm_after(norm),
            .scale = static_cast<float>(traits_.residual_scale),
            .target = buffers_.x};
  }

  const Config& config_;
  const DenseTraits& traits_;
  WeightFinder& weights_;
  ProgramBuilder& builder_;
  Buffers buffers_;
  RopeRef rope_;
  std::optional<RopeRef> window_rope_;
  std::optional<RopeRef> no_rope_;
};

}  // namespace

void build_dense(const Config& config, const DenseTraits& traits, WeightFinder& weights,
                 ProgramBuilder& builder) {
  if (Status s = check_feed_forward(config); !s) {
    weights.refuse(s.error().message);
    return;
  }
  const uint64_t n_vocab = builder.program().n_vocab;
  DenseBuilder dense(config, traits, weights, builder);
  dense.embed(n_vocab);
  for (uint32_t i = 0; i < config.n_layers && weights.status(); ++i) dense.layer(i);
  dense.output(n_vocab);
}

}  // namespace godwit::model
