#include "apps/model_shape.h"

#include <algorithm>
#include <array>

#include "apps/synth_arch.h"
#include "base/check.h"
#include "program/dense_shape.h"

namespace godwit::apps {
namespace {

// 256 bytes, one merged token, three special tokens.
constexpr uint32_t kMinVocab = 260;

// What a file says beyond the sizes.
struct FileFacts {
  std::string arch = "llama";
  uint32_t context = 131072;
  float rope_scaling_factor = 8.0f;
};

// One of program/dense_shape.h.
ModelShape dense(std::string_view name, const FileFacts& facts) {
  const program::DenseShape* s = program::find_dense_shape(name);
  godwit::check(s != nullptr, "model_shape: no such dense shape");
  return {.name = std::string(name),
          .arch = facts.arch,
          .dim = static_cast<uint32_t>(s->dim),
          .n_layers = s->n_layers,
          .n_heads = s->n_heads,
          .n_kv_heads = s->n_kv_heads,
          .head_dim = s->head_dim,
          .ffn = static_cast<uint32_t>(s->ffn),
          .vocab = static_cast<uint32_t>(s->n_vocab),
          .context = facts.context,
          .rope_theta = static_cast<float>(s->rope_base),
          .rms_epsilon = s->epsilon,
          .output = s->tied ? OutputMatrix::kTied : OutputMatrix::kOwn,
          .rope_scaling_factor = facts.rope_scaling_factor};
}

const std::array<ModelShape, 8>& shapes() {
  static const std::array<ModelShape, 8> shapes{{
      {.name = "tiny",
       .dim = 256,
       .n_layers = 2,
       .n_heads = 4,
       .n_kv_heads = 2,
       .head_dim = 64,
       .ffn = 512,
       .vocab = 512,
       .context = 4096,
       .output = OutputMatrix::kTied},
      dense("smollm2-135m", {.context = 8192}),
      dense("llama-1b", {.rope_scaling_factor = 32.0f}),
      dense("llama-3b", {.rope_scaling_factor = 32.0f}),
      dense("llama-8b", {}),
      dense("qwen2.5-1.5b", {.arch = "qwen2", .context = 32768}),
      {.name = "qwen3-30b-a3b",
       .arch = "qwen3moe",
       .dim = 2048,
       .n_layers = 48,
       .n_heads = 32,
       .n_kv_heads = 4,
       .head_dim = 128,
       .ffn = 6144,
       .experts = {.count = 128, .used = 8, .ffn = 768},
       .vocab = 151936,
       .context = 40960,
       .rope_theta = 1000000.0f,
       .rms_epsilon = 1e-6f},
      // Qwen3-Next-80B-A3B's widths; it has 48 layers.
      {.name = "qwen3next-8l",
       .arch = "qwen3next",
       .dim = 2048,
       .n_layers = 8,
       .n_heads = 16,
       .n_kv_heads = 2,
       .head_dim = 256,
       .rope_dim = 64,
       .ffn = 5120,
       .experts = {.count = 512, .used = 10, .ffn = 512, .shared_ffn = 512},
       .recurrence = {.key_heads = 16, .value_heads = 32, .head_dim = 128},
       .vocab = 151936,
       .context = 262144,
       .rope_theta = 10000000.0f,
       .rms_epsilon = 1e-6f},
  }};
  return shapes;
}

struct Bound {
  std::string_view what;
  uint32_t value;
  uint32_t max;
};

Status check(std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.value < 1 || bound.value > bound.max) {
      return fail("expected {} between 1 and {}, found {}", bound.what, bound.max, bound.value);
    }
  }
  return {};
}

Status validate_experts(const ModelShape& shape, bool shared) {
  const ExpertSizes& experts = shape.experts;
  const Bound bounds[] = {
      {"--experts", experts.count, 1u << 16},
      {"--experts-used", experts.used, experts.count},
      {"--expert-ffn", experts.ffn, 1u << 24},
      {"--shared-ffn", shared ? experts.shared_ffn : 1, 1u << 24},
  };
  return check(bounds);
}

Status validate_recurrence(const RecurrenceSizes& sizes) {
  const Bound bounds[] = {
      {"--ssm-key-heads", sizes.key_heads, 1u << 14},
      {"--ssm-value-heads", sizes.value_heads, 1u << 14},
      {"--ssm-head-dim", sizes.head_dim, 1u << 14},
  };
  if (auto valid = check(bounds); !valid) return valid;
  if (sizes.value_heads % sizes.key_heads != 0) {
    return fail("expected --ssm-value-heads to be a multiple of --ssm-key-heads, found {} and {}",
                sizes.value_heads, sizes.key_heads);
  }
  return {};
}

}  // namespace

std::span<const ModelShape> named_shapes() { return shapes(); }

const ModelShape* find_shape(std::string_view name) {
  const auto found = std::ranges::find(shapes(), name, &ModelShape::name);
  return found == shapes().end() ? nullptr : &*found;
}

std::string shape_names() {
  std::string names;
  for (const ModelShape& shape : shapes()) {
    names += (names.empty() ? "" : ", ") + shape.name;
  }
  return names;
}

Status validate(const ModelShape& shape) {
  const SynthArch* arch = find_synth_arch(shape.arch);
  if (arch == nullptr) {
    return fail("--arch: expected one of {}, found '{}'", synth_arch_names(), shape.arch);
  }
  // Far above any model, low enough that the bytes of all tensors fit 64 bits.
  const Bound bounds[] = {
      {"--dim", shape.dim, 1u << 20},           {"--layers", shape.n_layers, 1u << 12},
      {"--heads", shape.n_heads, 1u << 14},     {"--kv-heads", shape.n_kv_heads, 1u << 14},
      {"--head-dim", shape.head_dim, 1u << 14}, {"--ffn", shape.ffn, 1u << 24},
      {"--vocab", shape.vocab, 1u << 24},       {"--context", shape.context, 1u << 30},
  };
  if (auto valid = check(bounds); !valid) return valid;
  if (shape.n_heads % shape.n_kv_heads != 0) {
    return fail("expected --heads to be a multiple of --kv-heads, found {} and {}", shape.n_heads,
                shape.n_kv_heads);
  }
  if (shape.head_dim % 2 != 0) return fail("expected an even --head-dim, found {}", shape.head_dim);
  if (shape.rope_dim % 2 != 0 || shape.rope_dim > shape.head_dim) {
    return fail("expected an even --rope-dim up to --head-dim {}, found {}", shape.head_dim,
                shape.rope_dim);
  }
  if (shape.vocab < kMinVocab) {
    return fail("expected --vocab of {} (the bytes and the special tokens) or more, found {}",
                kMinVocab, shape.vocab);
  }
  if (!(shape.rope_theta > 1.0f)) {
    return fail("expected --rope-theta above 1, found {}", shape.rope_theta);
  }
  if (arch->experts) {
    if (auto valid = validate_experts(shape, arch->shared); !valid) return valid;
  }
  return arch->hybrid ? validate_recurrence(shape.recurrence) : Status{};
}

}  // namespace godwit::apps
