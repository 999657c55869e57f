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
  HybridBuilder(const Config& config, const HybridTraits& traits, WeightFinder& weights,
                ProgramBuilder& builder)
      : config_(config),
        traits_(traits),
        hybrid_(traits.delta != DeltaHeads::kNone),
        weights_(weights),
        builder_(builder),
        shape_{.q_width = uint64_t{config.n_heads} * config.head_dim,
               .kv_width = uint64_t{config.n_kv_heads} * config.head_dim,
               .key_width = uint64_t{config.delta.n_key_heads} * config.delta.head_dim,
               .value_width = uint64_t{config.delta.n_heads} * config.delta.head_dim} {
    x_ = builder.buffer("x", config.dim);
    q_ = builder.buffer("q", hybrid_ ? 2 * shape_.q_width : shape_.q_width);
    k_ = builder.buffer("k", shape_.kv_width);
    v_ = builder.buffer("v", shape_.kv_width);
    attended_ = builder.buffer("attended", shape_.q_width);
    if (hybrid_) make_delta_buffers();
    uint64_t hidden = config.ffn;
    if (traits.feed_forward != FeedForward::kDense) {
      routing_ = {.buffer = {}, .n_used = config.experts.n_used, .shared = shared()};
      routing_.buffer = builder.buffer("routing", routing_.width());
      hidden = routing_.n_used * uint64_t{config.experts.ffn} + (shared() ? shared_ffn() : 0);
    }
    hidden_ = builder.buffer("hidden", hidden);
    make_ropes();
  }

  void embed(uint64_t n_vocab) {
    builder_.step(
        "embed", program::Embed{.table = weights_.matrix("token_embd.weight", n_vocab, config_.dim),
                                .out = x_});
  }

  void layer(uint32_t index) {
    const std::string prefix = fmt::format("blk.{}.", index);
    builder_.scope(prefix);
    if (hybrid_ && config_.delta.covers(index)) {
      delta_net(prefix);
    } else {
      attention(prefix, index);
    }
    feed(prefix);
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
    attention(prefix, index);
    feed(prefix);
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

  void make_delta_buffers() {
    const uint64_t n_heads = config_.delta.n_heads;
    qkv_ = builder_.buffer("qkv", 2 * shape_.key_width + shape_.value_width);
    z_ = builder_.buffer("z", shape_.value_width);
    if (traits_.delta == DeltaHeads::kTiled) {
      b_ = builder_.buffer("b", n_heads);
      a_ = builder_.buffer("a", n_heads);
    } else {
      b_ = builder_.buffer("ba", 2 * n_heads);
    }
    mixed_ = builder_.buffer("mixed", shape_.value_width);
  }

  // Layers with a window may turn otherwise, where the file says so.
  void make_ropes() {
    rope_ = builder_.rope(make_rope(config_.rope, {}));
    window_rope_ = rope_;
    RopeConfig within = config_.rope;
    within.base = config_.window.rope_base;
    if (within.base != 0.0) window_rope_ = builder_.rope(make_rope(within, {}));
  }

  [[nodiscard]] bool shared() const {
    return traits_.feed_forward == FeedForward::kExpertsAndShared;
  }
  [[nodiscard]] uint64_t shared_ffn() const {
    return config_.experts.shared_ffn != 0 ? config_.experts.shared_ffn : config_.experts.ffn;
  }

  RmsNorm norm(const std::string& name, uint64_t width) {
    return {.weight = weights_.vector(name, width), .epsilon = config_.norm_epsilon};
  }

  std::optional<RmsNorm> head_norm(const std::string& name) {
    return traits_.normed_heads ? std::optional(norm(name, config_.head_dim)) : std::nullopt;
  }

  std::optional<program::WeightRef> bias(const std::string& name, uint64_t width) {
    return traits_.biases_and_sinks ? std::optional(weights_.vector(name, width)) : std::nullopt;
  }

  program::Projection project(const std::string& name, BufferId out, uint64_t rows) {
    return {.weight = weights_.matrix(name, rows, config_.dim), .out = out};
  }

  program::Projection project_biased(const std::string& name, BufferId out, uint64_t rows) {
    return {.weight = weights_.matrix(name + ".weight", rows, config_.dim),
            .bias = bias(name + ".bias", rows),
            .out = out};
  }

  void attention(const std::string& prefix, uint32_t index) {
    const uint64_t q_rows = hybrid_ ? 2 * shape_.q_width : shape_.q_width;
    builder_.step("qkv",
                  program::NormProject{
                      .in = x_,
                      .norm = norm(prefix + "attn_norm.weight", config_.dim),
                      .projections = {project_biased(prefix + "attn_q", q_, q_rows),
                                      project_biased(prefix + "attn_k", k_, shape_.kv_width),
                                      project_biased(prefix + "attn_v", v_, shape_.kv_width)}});
    const bool windowed = config_.window.covers(index, traits_.window_period);
    builder_.step("attend",
                  program::Attend{.q = q_,
                                  .k = k_,
                                  .v = v_,
                                  .out = attended_,
                                  .kv = builder_.kv(config_.n_kv_heads, config_.head_dim),
                                  .rope = windowed ? window_rope_ : rope_,
                                  .pairs = program::RopePairs::kHalves,
                                  .n_heads = config_.n_heads,
                                  .n_kv_heads = config_.n_kv_heads,
                                  .head_dim = config_.head_dim,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
                                  .q_norm = head_norm(prefix + "attn_q_norm.weight"),
                                  .k_norm = head_norm(prefix + "attn_k_norm.weight"),
                                  .window = windowed ? config_.window.length : 0,
                                  .gated = hybrid_,
                                  .sinks = bias(prefix + "attn_sinks.weight", config_.n_heads)});
    add("attn_out", prefix + "attn_output", attended_, shape_.q_width);
  }

  void delta_net(const std::string& prefix) {
    const DeltaNet& delta = config_.delta;
    const uint64_t channels = 2 * shape_.key_width + shape_.value_width;
    const bool tiled = traits_.delta == DeltaHeads::kTiled;
    const bool split = tiled || !weights_.has(prefix + "ssm_in.weight");
    program::NormProject in{
        .in = x_, .norm = norm(prefix + "attn_norm.weight", config_.dim), .projections = {}};
    if (split) {
      in.projections = {project(prefix + "attn_qkv.weight", qkv_, channels),
                        project(prefix + "attn_gate.weight", z_, shape_.value_width)};
    } else {
      if (!fused_) fused_ = builder_.buffer("qkvz", channels + shape_.value_width);
      in.projections = {project(prefix + "ssm_in.weight", *fused_, channels + shape_.value_width)};
    }
    if (tiled) {
      in.projections.push_back(project(prefix + "ssm_beta.weight", b_, delta.n_heads));
      in.projections.push_back(project(prefix + "ssm_alpha.weight", *a_, delta.n_heads));
    } else {
      in.projections.push_back(project(prefix + "ssm_ba.weight", b_, 2 * uint64_t{delta.n_heads}));
    }
    builder_.step("qkvz", std::move(in));
    builder_.step(
        "delta",
        Recurrent{.qkv = split ? qkv_ : *fused_,
                  .z = split ? std::optional(z_) : std::nullopt,
                  .b = b_,
                  .a = a_,
                  .out = mixed_,
                  .state = builder_.state({.channels = static_cast<uint32_t>(channels),
                                           .taps = delta.taps,
                                           .n_heads = delta.n_heads,
                                           .head_dim = delta.head_dim}),
                  .layout = split ? Recurrent::Layout::kSplit : Recurrent::Layout::kByKeyHead,
                  .pairing = tiled ? Recurrent::Pairing::kModulo : Recurrent::Pairing::kNeighbours,
                  .conv = weights_.matrix(prefix + "ssm_conv1d.weight", channels, delta.taps),
                  .dt_bias = weights_.vector(prefix + "ssm_dt.bias", delta.n_heads),
                  .decay = weights_.vector(prefix + "ssm_a", delta.n_heads),
                  .norm = norm(prefix + "ssm_norm.weight", delta.head_dim),
                  .n_heads = delta.n_heads,
                  .n_key_heads = delta.n_key_heads,
                  .head_dim = delta.head_dim});
    add("delta_out", prefix + "ssm_out", mixed_, shape_.value_width);
  }

  void feed(const std::string& prefix) {
    if (traits_.feed_forward == FeedForward::kDense) {
      gated_feed_forward(prefix);
    } else {
      experts(prefix);
    }
  }

  void gated_feed_forward(const std::string& prefix) {
    const uint64_t ffn = config_.ffn;
    builder_.step(
        "gated_up",
        program::GatedUp{.in = x_,
                         .norm = norm(prefix + std::string(traits_.second_norm), config_.dim),
                         .gate = weights_.matrix(prefix + "ffn_gate.weight", ffn, config_.dim),
                         .up = weights_.matrix(prefix + "ffn_up.weight", ffn, config_.dim),
                         .activation = traits_.activation,
                         .out = hidden_});
    add("down", prefix + "ffn_down", hidden_, ffn);
  }

  ExpertMatrix all_experts(const std::string& name, uint64_t rows, uint64_t cols) {
    const uint32_t n = config_.experts.n_experts;
    ExpertMatrix matrix{.weight = weights_.matrix(name + ".weight", n * rows, cols),
                        .n_experts = n};
    if (traits_.biases_and_sinks) matrix.bias = weights_.joined_rows(name + ".bias", n, rows);
    return matrix;
  }

  std::optional<program::WeightRef> shared_expert(const std::string& name, uint64_t rows,
                                                  uint64_t cols) {
    return shared() ? std::optional(weights_.matrix(name, rows, cols)) : std::nullopt;
  }

  void experts(const std::string& prefix) {
    const Experts& experts = config_.experts;
    const std::string norm_name = prefix + std::string(traits_.second_norm);
    const uint64_t dim = config_.dim;
    const uint64_t ffn = experts.ffn;
    builder_.step(
        "route",
        program::Route{
            .in = x_,
            .norm = norm(norm_name, dim),
            .weight = weights_.matrix(prefix + "ffn_gate_inp.weight", experts.n_experts, dim),
            .bias = bias(prefix + "ffn_gate_inp.bias", experts.n_experts),
            .shared = shared() ? weights_.optional_vector(prefix + "ffn_gate_inp_shexp.weight", dim)
                               : std::nullopt,
            .renormalise = true,
            .out = routing_});
    builder_.step(
        "experts_up",
        program::ExpertGatedUp{
            .in = x_,
            .norm = norm(norm_name, dim),
            .routing = routing_,
            .gate = all_experts(prefix + "ffn_gate_exps", ffn, dim),
            .up = all_experts(prefix + "ffn_up_exps", ffn, dim),
            .shared_gate = shared_expert(prefix + "ffn_gate_shexp.weight", shared_ffn(), dim),
            .shared_up = shared_expert(prefix + "ffn_up_shexp.weight", shared_ffn(), dim),
            .activation = traits_.activation,
            .out = hidden_});
    builder_.step("experts_down",
                  program::ExpertDownAdd{.in = hidden_,
                                         .routing = routing_,
                                         .down = all_experts(prefix + "ffn_down_exps", dim, ffn),
                                         .shared_down = shared_expert(
                                             prefix + "ffn_down_shexp.weight", dim, shared_ffn()),
                                         .target = x_});
  }

  void add(std::string_view label, const std::string& name, BufferId in, uint64_t cols) {
    builder_.step(
        label, program::ProjectAdd{.in = in,
                                   .weight = weights_.matrix(name + ".weight", config_.dim, cols),
                                   .bias = bias(name + ".bias", config_.dim),
                                   .target = x_});
  }

  const Config& config_;
  const HybridTraits& traits_;
  bool hybrid_;  // with DeltaNet layers
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
  BufferId b_;         // [delta heads], or with a's
  std::optional<BufferId> a_;
  BufferId mixed_;   // [delta heads, head_dim]
  BufferId hidden_;  // [slots, ffn]
  std::optional<BufferId> fused_;
  program::Routing routing_;
  program::RopeRef rope_;
  program::RopeRef window_rope_;
};

// What the keys must say beyond their bounds.
Status check_config(const Config& config, const HybridTraits& traits) {
  const Experts& experts = config.experts;
  if (traits.feed_forward == FeedForward::kDense) {
    if (Status s = check_feed_forward(config); !s) return s;
  } else if (experts.n_experts == 0 || experts.ffn == 0) {
    return fail("expert_count and expert_feed_forward_length must be more than 0");
  }
  if (traits.delta == DeltaHeads::kNone) return {};
  const DeltaNet& delta = config.delta;
  const bool layers_known = !delta.recurrent.empty() || delta.attention_every != 0;
  if (delta.taps < 2 || delta.head_dim == 0 || delta.n_key_heads == 0 ||
      delta.n_heads % delta.n_key_heads != 0 || delta.n_heads == 0 || !layers_known) {
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
  if (Status s = check_config(config, traits); !s) {
    weights.refuse(s.error().message);
    return;
  }
  const uint64_t n_vocab = builder.program().n_vocab;
  HybridBuilder model(config, traits, weights, builder);
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
