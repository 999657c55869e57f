#include "backend/cuda/persistent/bench/program.h"

#include <cmath>

#include "base/check.h"
#include "program/builder.h"

namespace godwit::cuda::persistent {

std::vector<BenchSpec> bench_specs() {
  return {
      {.name = "llama-1b",
       .n_layers = 16,
       .dim = 2048,
       .n_heads = 32,
       .n_kv_heads = 8,
       .head_dim = 64,
       .ffn = 8192,
       .n_vocab = 128256},
      {.name = "llama-3b",
       .n_layers = 28,
       .dim = 3072,
       .n_heads = 24,
       .n_kv_heads = 8,
       .head_dim = 128,
       .ffn = 8192,
       .n_vocab = 128256},
      {.name = "llama-8b",
       .n_layers = 32,
       .dim = 4096,
       .n_heads = 32,
       .n_kv_heads = 8,
       .head_dim = 128,
       .ffn = 14336,
       .n_vocab = 128256},
      {.name = "smollm2-135m",
       .n_layers = 30,
       .dim = 576,
       .n_heads = 9,
       .n_kv_heads = 3,
       .head_dim = 64,
       .ffn = 1536,
       .n_vocab = 49152,
       .type = TensorType::kF16},
      {.name = "qwen2.5-0.5b",
       .n_layers = 24,
       .dim = 896,
       .n_heads = 14,
       .n_kv_heads = 2,
       .head_dim = 64,
       .ffn = 4864,
       .n_vocab = 151936,
       .pairs = program::RopePairs::kHalves,
       .biases = true},
      {.name = "qwen2.5-1.5b",
       .n_layers = 28,
       .dim = 1536,
       .n_heads = 12,
       .n_kv_heads = 2,
       .head_dim = 128,
       .ffn = 8960,
       .n_vocab = 151936,
       .pairs = program::RopePairs::kHalves,
       .biases = true},
      {.name = "qwen3-0.6b",
       .n_layers = 28,
       .dim = 1024,
       .n_heads = 16,
       .n_kv_heads = 8,
       .head_dim = 128,
       .ffn = 3072,
       .n_vocab = 151936,
       .pairs = program::RopePairs::kHalves,
       .head_norms = true},
      {.name = "tiny",
       .n_layers = 2,
       .dim = 128,
       .n_heads = 2,
       .n_kv_heads = 1,
       .head_dim = 64,
       .ffn = 256,
       .n_vocab = 300},
  };
}

BenchSpec bench_spec(std::string_view name) {
  for (const BenchSpec& spec : bench_specs()) {
    if (spec.name == name) return spec;
  }
  check(false, "bench_spec: there is no such shape");
  return {};
}

program::Program bench_program(const BenchSpec& spec) {
  program::ProgramBuilder b;
  const uint64_t q_width = uint64_t{spec.n_heads} * spec.head_dim;
  const uint64_t kv_width = uint64_t{spec.n_kv_heads} * spec.head_dim;
  const auto vector = [&](const std::string& name, uint64_t n) {
    return b.weight(name, TensorType::kF32, 1, n);
  };
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    return b.weight(name, spec.type, rows, cols);
  };
  const auto norm = [&](const std::string& name, uint64_t n) {
    return program::RmsNorm{.weight = vector(name, n), .epsilon = 1e-5f};
  };
  const program::BufferId x = b.buffer("x", spec.dim);
  const program::BufferId q = b.buffer("q", q_width);
  const program::BufferId k = b.buffer("k", kv_width);
  const program::BufferId v = b.buffer("v", kv_width);
  const program::BufferId attended = b.buffer("attended", q_width);
  const program::BufferId hidden = b.buffer("hidden", spec.ffn);
  program::Rope angles{.n_rot = spec.head_dim, .frequencies = {}};
  for (uint32_t i = 0; i < spec.head_dim / 2; ++i) {
    angles.frequencies.push_back(std::pow(500000.0, -2.0 * i / spec.head_dim));
  }
  const program::RopeRef rope = b.rope(angles);
  b.step("embed", program::Embed{.table = matrix("embd", spec.n_vocab, spec.dim), .out = x});
  for (uint32_t l = 0; l < spec.n_layers; ++l) {
    const std::string at = "blk." + std::to_string(l) + ".";
    b.scope(at);
    const auto project = [&](const char* name, uint64_t rows, program::BufferId out) {
      program::Projection p{.weight = matrix(at + name, rows, spec.dim), .out = out};
      if (spec.biases) p.bias = vector(at + name + ".bias", rows);
      return p;
    };
    b.step("qkv",
           program::NormProject{.in = x,
                                .norm = norm(at + "attn_norm", spec.dim),
                                .projections = {project("q", q_width, q), project("k", kv_width, k),
                                                project("v", kv_width, v)}});
    program::Attend attend{
        .q = q,
        .k = k,
        .v = v,
        .out = attended,
        .kv = b.kv(spec.n_kv_heads, spec.head_dim),
        .rope = rope,
        .pairs = spec.pairs,
        .n_heads = spec.n_heads,
        .n_kv_heads = spec.n_kv_heads,
        .head_dim = spec.head_dim,
        .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)))};
    if (spec.head_norms) {
      attend.q_norm = norm(at + "q_norm", spec.head_dim);
      attend.k_norm = norm(at + "k_norm", spec.head_dim);
    }
    b.step("attend", attend);
    b.step("attn_out",
           program::ProjectAdd{
               .in = attended, .weight = matrix(at + "o", spec.dim, q_width), .target = x});
    b.step("gated_up", program::GatedUp{.in = x,
                                        .norm = norm(at + "ffn_norm", spec.dim),
                                        .gate = matrix(at + "gate", spec.ffn, spec.dim),
                                        .up = matrix(at + "up", spec.ffn, spec.dim),
                                        .out = hidden});
    b.step("down",
           program::ProjectAdd{
               .in = hidden, .weight = matrix(at + "down", spec.dim, spec.ffn), .target = x});
  }
  b.scope("");
  const program::BufferId logits = b.buffer("logits", spec.n_vocab);
  b.step("output", program::Output{.in = x,
                                   .norm = norm("output_norm", spec.dim),
                                   .weight = matrix("embd", spec.n_vocab, spec.dim),
                                   .logits = logits});
  program::Program& program = b.program();
  program.n_layers = spec.n_layers;
  program.dim = spec.dim;
  program.n_vocab = spec.n_vocab;
  program.logits = logits;
  return std::move(b).finish();
}

}  // namespace godwit::cuda::persistent
