#include "program/dense_shape.h"

#include <algorithm>
#include <array>

namespace godwit::program {
namespace {

constexpr std::array kShapes = {
    DenseShape{.name = "llama-1b",
               .n_layers = 16,
               .dim = 2048,
               .n_heads = 32,
               .n_kv_heads = 8,
               .head_dim = 64,
               .ffn = 8192,
               .n_vocab = 128256},
    DenseShape{.name = "smollm2-135m",
               .n_layers = 30,
               .dim = 576,
               .n_heads = 9,
               .n_kv_heads = 3,
               .head_dim = 64,
               .ffn = 1536,
               .n_vocab = 49152,
               .rope_base = 100000.0},
    DenseShape{.name = "llama-3b",
               .n_layers = 28,
               .dim = 3072,
               .n_heads = 24,
               .n_kv_heads = 8,
               .head_dim = 128,
               .ffn = 8192,
               .n_vocab = 128256},
    DenseShape{.name = "llama-8b",
               .n_layers = 32,
               .dim = 4096,
               .n_heads = 32,
               .n_kv_heads = 8,
               .head_dim = 128,
               .ffn = 14336,
               .n_vocab = 128256,
               .tied = false},
    DenseShape{.name = "qwen2.5-1.5b",
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
    DenseShape{.name = "qwen3-1.7b",
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
    DenseShape{.name = "qwen2.5-0.5b",
               .n_layers = 24,
               .dim = 896,
               .n_heads = 14,
               .n_kv_heads = 2,
               .head_dim = 64,
               .ffn = 4864,
               .n_vocab = 151936,
               .rope_base = 1000000.0,
               .epsilon = 1e-6f,
               .pairs = RopePairs::kHalves,
               .qkv_biases = true},
    DenseShape{.name = "qwen3-0.6b",
               .n_layers = 28,
               .dim = 1024,
               .n_heads = 16,
               .n_kv_heads = 8,
               .head_dim = 128,
               .ffn = 3072,
               .n_vocab = 151936,
               .rope_base = 1000000.0,
               .epsilon = 1e-6f,
               .pairs = RopePairs::kHalves,
               .head_norms = true},
};

}  // namespace

std::span<const DenseShape> dense_shapes() { return kShapes; }

const DenseShape* find_dense_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapes, name, &DenseShape::name);
  return found == kShapes.end() ? nullptr : &*found;
}

}  // namespace godwit::program
