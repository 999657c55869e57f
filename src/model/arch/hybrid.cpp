#include "model/arch/hybrid.h"

#include <cmath>
#include <string>
#include <utility>

#include "model/rope.h"

namespace godwit::model {
namespace {

using program::BufferId;
using program::ExpertMatrix;
using program::ProgramBuilder;
using program::Recurrent;
using program::RmsNorm;

struct Shape {
  uint64_t q_width;      // [n_heads, head_dim]
  uint64_t kv_width;     // [n_kv_heads, head_dim]
  uint64_t key_width;    // of a delta layer: [n_key_heads, head_dim]
  uint64_t value_width;  // of a delta layer: [n_heads, head_dim]
};

class HybridBuilder {
 public:
  // `hybrid`: with DeltaNet layers, gated attention and a shared expert.
  HybridBuilder(const Config& config, bool hybrid, WeightFinder& weights, ProgramBuilder& builder)
      : config_(config),
        hybrid_(hybrid),
        weights_(weights),
        builder_(builder),
        shape_{.q_width = uint64_t{config.n_heads} * config.head_dim,
               .kv_width = uint64_t{config.n_kv_heads} * config.head_dim,
               .key_width = uint64_t{config.delta.n_key_heads} * config.delta.head_dim,
               .value_width = uint64_t{config.delta.n_heads} * config.delta.head_dim} {
    x_ = builder.buffer("x", config.dim);
    q_ = builder.buffer("q", hybrid ? 2 * shape_.q_width : shape_.q_width);
    k_ = builder.buffer("k", shape_.kv_width);
    v_ = builder.buffer("v", shape_.kv_width);
    attended_ = builder.buffer("attended", shape_.q_width);
    if (hybrid) {
      qkv_ = builder.buffer("qkv", 2 * shape_.key_width + shape_.value_width);
      z_ = builder.buffer("z", shape_.value_width);
      ba_ = builder.buffer("ba", 2 * uint64_t{config.delta.n_heads});
      mixed_ = builder.buffer("mixed", shape_.value_width);
    }
    routing_ = {.buffer = {}, .n_used = config.experts.n_used, .shared = hybrid};
    routing_.buffer = builder.buffer("routing", routing_.width());
    hidden_ = builder.buffer(
        "hidden", routing_.n_used * uint64_t{config.experts.ffn} + (hybrid ? shared_ffn() : 0));
    rope_ = builder.rope(make_rope(config.rope, {}));
  }

  void embed(uint64_t n_vocab) {
    builder_.step(
        "embed", program::Embed{.table = weights_.matrix("token_embd.weight", n_vocab, config_.dim),
                                .out = x_});
  }

  void layer(uint32_t index) {
    const std::string prefix = fmt::format("blk.{}.", index);
    builder_.scope(prefix);
    if (!hybrid_ || (index + 1) % config_.delta.attention_every == 0) {
      attention(prefix);
    } else {
      delta_net(prefix);
    }
    experts(prefix);
  }

  void output(uint64_t n_vocab) {
    builder_.scope("");
    const BufferId logits = builder_.buffer("logits", n_vocab);
    builder_.program().logits = logits;
    builder_.step("output", program::Output{.in = x_,
                                            .norm = norm(kOutputNorm, config_.dim),
                                            .weight = head(n_vocab),
                                            .logits = logits});
  }

  // The head that predicts one token further: W [norm(embedding of the token); norm(h)] with the
  // hidden state h after the final norm, then a layer of attention, whatever its index.
  void predict(uint32_t index, uint64_t n_vocab) {
    const std::string prefix = fmt::format("blk.{}.", index);
    const std::string nextn = prefix + "nextn.";
    const auto own = [&](const char* name, const char* shared) {
      return weights_.has(nextn + name) ? nextn + name : std::string(shared);
    };
    const uint64_t dim = config_.dim;
    const BufferId hidden = builder_.buffer("mtp_hidden", dim);
    const BufferId embedded = builder_.buffer("mtp_embedded", dim);
    const BufferId pair = builder_.buffer("mtp_pair", 2 * dim);
    const BufferId main_stream = std::exchange(x_, builder_.buffer("mtp_x", dim));
    const std::string final_norm = own("shared_head_norm.weight", kOutputNorm);
    builder_.program().mtp_hidden = hidden;
    builder_.list(program::StepList::kMtp);
    builder_.scope(prefix);
    builder_.step("hidden",
                  program::Norm{.parts = {{main_stream, norm(kOutputNorm, dim)}}, .out = hidden});
    builder_.step("embed", program::Embed{.table = weights_.matrix(
                                              own("embed_tokens.weight", kEmbedding), n_vocab, dim),
                                          .out = embedded});
    builder_.step("pair", program::Norm{.parts = {{embedded, norm(nextn + "enorm.weight", dim)},
                                                  {hidden, norm(nextn + "hnorm.weight", dim)}},
                                        .out = pair});
    builder_.step(
        "joined",
        program::NormProject{
            .in = pair,
            .projections = {
                {.weight = weights_.matrix(nextn + "eh_proj.weight", dim, 2 * dim), .out = x_}}});
    attention(prefix);
    experts(prefix);
    builder_.step("own_hidden",
                  program::Norm{.parts = {{x_, norm(final_norm, dim)}}, .out = hidden});
    const std::string own_head = nextn + "shared_head_head.weight";
    builder_.step("output", program::Output{.in = x_,
                                            .norm = norm(final_norm, dim),
                                            .weight = weights_.has(own_head)
                                                          ? weights_.matrix(own_head, n_vocab, dim)
                                                          : head(n_vocab),
                                            .logits = builder_.program().logits});
    builder_.list(program::StepList::kMain);
    x_ = main_stream;
  }

 private:
  static constexpr const char* kOutputNorm = "output_norm.weight";
  static constexpr const char* kEmbedding = "token_embd.weight";

  program::WeightRef head(uint64_t n_vocab) {
    const char* name = weights_.has("output.weight") ? "output.weight" : kEmbedding;
    return weights_.matrix(name, n_vocab, config_.dim);
  }

  [[nodiscard]] uint64_t shared_ffn() const {
    return config_.experts.shared_ffn != 0 ? config_.experts.shared_ffn : config_.experts.ffn;
  }

  RmsNorm norm(const std::string& name, uint64_t width) {
    return {.weight = weights_.vector(name, width), .epsilon = config_.norm_epsilon};
  }

  program::Projection project(const std::string& name, BufferId out, uint64_t rows) {
    return {.weight = weights_.matrix(name, rows, config_.dim), .out = out};
  }

  void attention(const std::string& prefix) {
    const uint64_t q_rows = hybrid_ ? 2 * shape_.q_width : shape_.q_width;
    builder_.step("qkv",
                  program::NormProject{
                      .in = x_,
                      .norm = norm(prefix + "attn_norm.weight", config_.dim),
                      .projections = {project(prefix + "attn_q.weight", q_, q_rows),
                                      project(prefix + "attn_k.weight", k_, shape_.kv_width),
                                      project(prefix + "attn_v.weight", v_, shape_.kv_width)}});
    builder_.step("attend",
                  program::Attend{.q = q_,
                                  .k = k_,
                                  .v = v_,
                                  .out = attended_,
                                  .kv = builder_.kv(config_.n_kv_heads, config_.head_dim),
                                  .rope = rope_,
                                  .pairs = program::RopePairs::kHalves,
                                  .n_heads = config_.n_heads,
                                  .n_kv_heads = config_.n_kv_heads,
                                  .head_dim = config_.head_dim,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                                  .q_norm = norm(prefix + "attn_q_norm.weight", config_.head_dim),
                                  .k_norm = norm(prefix + "attn_k_norm.weight", config_.head_dim),
                                  .gated = hybrid_});
    add("attn_out", prefix + "attn_output.weight", attended_, shape_.q_width);
  }

  void delta_net(const std::string& prefix) {
    const DeltaNet& delta = config_.delta;
    const uint64_t channels = 2 * shape_.key_width + shape_.value_width;
    const bool split = !weights_.has(prefix + "ssm_in.weight");
    program::NormProject in{
        .in = x_, .norm = norm(prefix + "attn_norm.weight", config_.dim), .projections = {}};
    if (split) {
      in.projections = {project(prefix + "attn_qkv.weight", qkv_, channels),
                        project(prefix + "attn_gate.weight", z_, shape_.value_width)};
    } else {
      if (!fused_) fused_ = builder_.buffer("qkvz", channels + shape_.value_width);
      in.projections = {project(prefix + "ssm_in.weight", *fused_, channels + shape_.value_width)};
    }
    in.projections.push_back(project(prefix + "ssm_ba.weight", ba_, 2 * uint64_t{delta.n_heads}));
    builder_.step("qkvz", std::move(in));
    builder_.step(
        "delta",
        Recurrent{.qkv = split ? qkv_ : *fused_,
                  .z = split ? std::optional(z_) : std::nullopt,
                  .ba = ba_,
                  .out = mixed_,
                  .state = builder_.state({.channels = static_cast<uint32_t>(channels),
                                           .taps = delta.taps,
                                           .n_heads = delta.n_heads,
                                           .head_dim = delta.head_dim}),
                  .layout = split ? Recurrent::Layout::kSplit : Recurrent::Layout::kByKeyHead,
                  .conv = weights_.matrix(prefix + "ssm_conv1d.weight", channels, delta.taps),
                  .dt_bias = weights_.vector(prefix + "ssm_dt.bias", delta.n_heads),
                  .decay = weights_.vector(prefix + "ssm_a", delta.n_heads),
                  .norm = norm(prefix + "ssm_norm.weight", delta.head_dim),
                  .n_heads = delta.n_heads,
                  .n_key_heads = delta.n_key_heads,
                  .head_dim = delta.head_dim});
    add("delta_out", prefix + "ssm_out.weight", mixed_, shape_.value_width);
  }

  void experts(const std::string& prefix) {
    const Experts& experts = config_.experts;
    const std::string norm_name =
        prefix + (hybrid_ ? "post_attention_norm.weight" : "ffn_norm.weight");
    const auto all = [&](const std::string& name, uint64_t rows, uint64_t cols) {
      return ExpertMatrix{.weight = weights_.matrix(prefix + name, experts.n_experts * rows, cols),
                          .n_experts = experts.n_experts};
    };
    const auto shared = [&](const std::string& name, uint64_t rows, uint64_t cols) {
      return hybrid_ ? std::optional(weights_.matrix(prefix + name, rows, cols)) : std::nullopt;
    };
    const uint64_t dim = config_.dim;
    const uint64_t ffn = experts.ffn;
    builder_.step(
        "route",
        program::Route{
            .in = x_,
            .norm = norm(norm_name, dim),
            .weight = weights_.matrix(prefix + "ffn_gate_inp.weight", experts.n_experts, dim),
            .shared = hybrid_ ? weights_.optional_vector(prefix + "ffn_gate_inp_shexp.weight", dim)
                              : std::nullopt,
            .renormalise = true,
            .out = routing_});
    builder_.step(
        "experts_up",
        program::ExpertGatedUp{.in = x_,
                               .norm = norm(norm_name, dim),
                               .routing = routing_,
                               .gate = all("ffn_gate_exps.weight", ffn, dim),
                               .up = all("ffn_up_exps.weight", ffn, dim),
                               .shared_gate = shared("ffn_gate_shexp.weight", shared_ffn(), dim),
                               .shared_up = shared("ffn_up_shexp.weight", shared_ffn(), dim),
                               .out = hidden_});
    builder_.step(
        "experts_down",
        program::ExpertDownAdd{.in = hidden_,
                               .routing = routing_,
                               .down = all("ffn_down_exps.weight", dim, ffn),
                               .shared_down = shared("ffn_down_shexp.weight", dim, shared_ffn()),
                               .target = x_});
  }

  void add(std::string_view label, const std::string& name, BufferId in, uint64_t cols) {
    builder_.step(label, program::ProjectAdd{.in = in,
                                             .weight = weights_.matrix(name, config_.dim, cols),
                                             .bias = {},
                                             .target = x_});
  }

  const Config& config_;
  bool hybrid_;
  WeightFinder& weights_;
  ProgramBuilder& builder_;
  Shape shape_;
  BufferId x_;         // [dim], the residual stream
  BufferId q_;         // [n_heads, (2,) head_dim]
  BufferId k_;         // [n_kv_heads, head_dim]
  BufferId v_;         // [n_kv_heads, head_dim]
  BufferId attended_;  // [n_heads, head_dim]
  BufferId qkv_;       // [channels of the convolution]
  BufferId z_;         // [delta heads, head_dim]
  BufferId ba_;        // [2 delta heads]
  BufferId mixed_;     // [delta heads, head_dim]
  BufferId hidden_;    // [slots, ffn]
  std::optional<BufferId> fused_;
  program::Routing routing_;
  program::RopeRef rope_;
};

// What the hybrid's keys must say beyond their bounds.
Status check_config(const Config& config, bool hybrid) {
  const Experts& experts = config.experts;
  if (experts.n_experts == 0 || experts.ffn == 0) {
    return fail("expert_count and expert_feed_forward_length must be more than 0");
  }
  if (!hybrid) return {};
  const DeltaNet& delta = config.delta;
  if (delta.taps < 2 || delta.head_dim == 0 || delta.n_key_heads == 0 ||
      delta.n_heads % delta.n_key_heads != 0 || delta.n_heads == 0 || delta.attention_every == 0) {
    return fail(
        "ssm.conv_kernel {}, ssm.state_size {}, ssm.time_step_rank {} and ssm.group_count "
        "{} make no DeltaNet layer",
        delta.taps, delta.head_dim, delta.n_heads, delta.n_key_heads);
  }
  return {};
}

}  // namespace

void build_hybrid(const Config& config, const HybridTraits& traits, WeightFinder& weights,
                  ProgramBuilder& builder) {
  const bool hybrid = traits.delta_net;
  if (Status s = check_config(config, hybrid); !s) {
    weights.refuse(s.error().message);
    return;
  }
  const uint64_t n_vocab = weights.rows_of("token_embd.weight");
  program::Program& program = builder.program();
  program.n_layers = config.n_layers;
  program.dim = config.dim;
  program.n_vocab = n_vocab;
  program.trained_context = config.context;
  HybridBuilder model(config, hybrid, weights, builder);
  model.embed(n_vocab);
  for (uint32_t i = 0; i < config.n_layers && weights.status(); ++i) model.layer(i);
  model.output(n_vocab);
  // Of the layers that predict further tokens the first is run, where it is asked for.
  if (config.with_mtp && weights.has(fmt::format("blk.{}.nextn.eh_proj.weight", config.n_layers))) {
    model.predict(config.n_layers, n_vocab);
  }
  for (uint32_t i = 0; i < config.n_extra_layers; ++i) {
    weights.ignore_prefix(fmt::format("blk.{}.", config.n_layers + i));
  }
}

}  // namespace godwit::model
