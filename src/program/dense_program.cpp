#include "program/dense_program.h"

#include <cmath>

namespace godwit::program {
namespace {

struct DenseBuffers {
  BufferId x, q, k, v, attended, hidden;
};

Rope rope_of(const DenseShape& shape) {
  Rope rope{.n_rot = shape.head_dim, .frequencies = {}, .magnitude = 1.0};
  for (uint32_t i = 0; i < shape.head_dim / 2; ++i) {
    rope.frequencies.push_back(std::pow(shape.rope_base, -2.0 * i / shape.head_dim));
  }
  return rope;
}

void add_layer(const DenseShape& s, const DenseLayerWeights& w, const DenseBuffers& at,
               RopeRef rope, ProgramBuilder& b) {
  const auto head_norm = [&](const std::optional<WeightRef>& weight) {
    return weight ? std::optional(RmsNorm{.weight = *weight, .epsilon = s.epsilon}) : std::nullopt;
  };
  b.step("qkv", NormProject{.in = at.x,
                            .norm = RmsNorm{.weight = w.attn_norm, .epsilon = s.epsilon},
                            .projections = {{.weight = w.q, .bias = w.q_bias, .out = at.q},
                                            {.weight = w.k, .bias = w.k_bias, .out = at.k},
                                            {.weight = w.v, .bias = w.v_bias, .out = at.v}}});
  b.step("attend",
         Attend{.q = at.q,
                .k = at.k,
                .v = at.v,
                .out = at.attended,
                .kv = b.kv(s.n_kv_heads, s.head_dim),
                .rope = rope,
                .pairs = s.pairs,
                .n_heads = s.n_heads,
                .n_kv_heads = s.n_kv_heads,
                .head_dim = s.head_dim,
                .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_dim))),
                .q_norm = head_norm(w.q_norm),
                .k_norm = head_norm(w.k_norm)});
  b.step("attn_out", ProjectAdd{.in = at.attended, .weight = w.o, .target = at.x});
  b.step("gated_up", GatedUp{.in = at.x,
                             .norm = RmsNorm{.weight = w.ffn_norm, .epsilon = s.epsilon},
                             .gate = w.gate,
                             .up = w.up,
                             .out = at.hidden});
  b.step("down", ProjectAdd{.in = at.hidden, .weight = w.down, .target = at.x});
}

}  // namespace

Program dense_program(const DenseShape& shape, const DenseWeights& weights,
                      ProgramBuilder builder) {
  const DenseBuffers at{.x = builder.buffer("x", shape.dim),
                        .q = builder.buffer("q", shape.q_width()),
                        .k = builder.buffer("k", shape.kv_width()),
                        .v = builder.buffer("v", shape.kv_width()),
                        .attended = builder.buffer("attended", shape.q_width()),
                        .hidden = builder.buffer("hidden", shape.ffn)};
  const RopeRef rope = builder.rope(rope_of(shape));
  builder.step("embed", Embed{.table = weights.embedding, .out = at.x});
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    builder.scope("blk." + std::to_string(i) + ".");
    add_layer(shape, weights.layers[i], at, rope, builder);
  }
  builder.scope("");
  const BufferId logits = builder.buffer("logits", shape.n_vocab);
  builder.step("output", Output{.in = at.x,
                                .norm = {.weight = weights.output_norm, .epsilon = shape.epsilon},
                                .weight = weights.output,
                                .logits = logits});
  Program& program = builder.program();
  program.architecture = shape.pairs == RopePairs::kAdjacent ? "llama" : "qwen";
  program.n_layers = shape.n_layers;
  program.dim = shape.dim;
  program.n_vocab = shape.n_vocab;
  program.trained_context = 131072;
  program.logits = logits;
  return std::move(builder).finish();
}

}  // namespace godwit::program
