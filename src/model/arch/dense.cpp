#include "model/arch/dense.h"

#include <cmath>
#include <string>

#include "model/rope.h"

namespace godwit::model {
namespace {

using program::BufferId;
using program::ProgramBuilder;
using program::RmsNorm;

struct Buffers {
  BufferId x;         // [dim], the residual stream
  BufferId q;         // [n_heads, head_dim]
  BufferId k;         // [n_kv_heads, head_dim]
  BufferId v;         // [n_kv_heads, head_dim]
  BufferId attended;  // [n_heads, head_dim]
  BufferId hidden;    // [ffn]
};

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
    rope_ = builder.rope(
        make_rope(config.rope, weights.values("rope_freqs.weight", config.rope.n_rot / 2)));
  }

  void embed(uint64_t n_vocab) {
    builder_.step(
        "embed", program::Embed{.table = weights_.matrix("token_embd.weight", n_vocab, config_.dim),
                                .out = buffers_.x});
  }

  void layer(const std::string& prefix) {
    builder_.scope(prefix);
    builder_.step("qkv", program::NormProject{
                             .in = buffers_.x,
                             .norm = norm(prefix + "attn_norm.weight"),
                             .projections = {project(prefix + "attn_q", buffers_.q, q_width()),
                                             project(prefix + "attn_k", buffers_.k, kv_width()),
                                             project(prefix + "attn_v", buffers_.v, kv_width())}});
    builder_.step("attend",
                  program::Attend{.q = buffers_.q,
                                  .k = buffers_.k,
                                  .v = buffers_.v,
                                  .out = buffers_.attended,
                                  .kv = builder_.kv(config_.n_kv_heads, config_.head_dim),
                                  .rope = rope_,
                                  .pairs = traits_.rope_pairs,
                                  .n_heads = config_.n_heads,
                                  .n_kv_heads = config_.n_kv_heads,
                                  .head_dim = config_.head_dim,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))});
    builder_.step("attn_out", add(prefix + "attn_output", buffers_.attended, q_width()));
    builder_.step("gated_up",
                  program::GatedUp{
                      .in = buffers_.x,
                      .norm = norm(prefix + "ffn_norm.weight"),
                      .gate = weights_.matrix(prefix + "ffn_gate.weight", config_.ffn, config_.dim),
                      .up = weights_.matrix(prefix + "ffn_up.weight", config_.ffn, config_.dim),
                      .out = buffers_.hidden});
    builder_.step("down", add(prefix + "ffn_down", buffers_.hidden, config_.ffn));
  }

  void output(uint64_t n_vocab) {
    builder_.scope("");
    // A file without an output matrix ties it to the embedding.
    const char* name = weights_.has("output.weight") ? "output.weight" : "token_embd.weight";
    const BufferId logits = builder_.buffer("logits", n_vocab);
    builder_.step("output", program::Output{.in = buffers_.x,
                                            .norm = norm("output_norm.weight"),
                                            .weight = weights_.matrix(name, n_vocab, config_.dim),
                                            .logits = logits});
    builder_.program().logits = logits;
  }

 private:
  [[nodiscard]] uint64_t q_width() const { return uint64_t{config_.n_heads} * config_.head_dim; }
  [[nodiscard]] uint64_t kv_width() const {
    return uint64_t{config_.n_kv_heads} * config_.head_dim;
  }

  RmsNorm norm(const std::string& name) {
    return {.weight = weights_.vector(name, config_.dim), .epsilon = config_.norm_epsilon};
  }

  program::Projection project(const std::string& name, BufferId out, uint64_t rows) {
    return {.weight = weights_.matrix(name + ".weight", rows, config_.dim),
            .bias = weights_.optional_vector(name + ".bias", rows),
            .out = out};
  }

  program::ProjectAdd add(const std::string& name, BufferId in, uint64_t cols) {
    return {.in = in,
            .weight = weights_.matrix(name + ".weight", config_.dim, cols),
            .bias = weights_.optional_vector(name + ".bias", config_.dim),
            .target = buffers_.x};
  }

  const Config& config_;
  const DenseTraits& traits_;
  WeightFinder& weights_;
  ProgramBuilder& builder_;
  Buffers buffers_;
  program::RopeRef rope_;
};

}  // namespace

void build_dense(const Config& config, const DenseTraits& traits, WeightFinder& weights,
                 ProgramBuilder& builder) {
  const uint64_t n_vocab = weights.rows_of("token_embd.weight");
  program::Program& program = builder.program();
  program.n_layers = config.n_layers;
  program.dim = config.dim;
  program.n_vocab = n_vocab;
  program.trained_context = config.context;

  DenseBuilder dense(config, traits, weights, builder);
  dense.embed(n_vocab);
  for (uint32_t i = 0; i < config.n_layers && weights.status(); ++i) {
    dense.layer(fmt::format("blk.{}.", i));
  }
  dense.output(n_vocab);
}

}  // namespace godwit::model
