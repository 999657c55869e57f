// The sizes of a transformer, and the shapes of well-known models by name, for `synth`:
// numbers only, from the models' public configurations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace godwit::apps {

enum class OutputMatrix { kTied, kOwn };      // tied: the embedding is also the output matrix
enum class RopeFactors { kAbsent, kLlama3 };  // whether rope_freqs.weight is in the file

// All zero: a dense feed-forward layer.
struct ExpertSizes {
  uint32_t count = 0;
  uint32_t used = 0;        // per token
  uint32_t ffn = 0;         // width of one expert
  uint32_t shared_ffn = 0;  // width of the expert that every token uses
};

// The gated delta rule's layers, where an architecture has them.
struct RecurrenceSizes {
  uint32_t key_heads = 0;
  uint32_t value_heads = 0;
  uint32_t head_dim = 0;  // of keys and values
  uint32_t conv_kernel = 4;
  uint32_t interval = 4;  // every such layer is one of attention
};

struct ModelShape {
  std::string name;
  std::string arch = "llama";  // one of synth_archs()
  uint32_t dim = 0;
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t rope_dim = 0;  // of each head, from its start; 0: all
  uint32_t ffn = 0;
  ExpertSizes experts = {};
  RecurrenceSizes recurrence = {};
  uint32_t vocab = 0;
  uint32_t context = 0;
  float rope_theta = 10000.0f;
  float rms_epsilon = 1e-5f;
  OutputMatrix output = OutputMatrix::kOwn;
  RopeFactors rope_factors = RopeFactors::kAbsent;
  float rope_scaling_factor = 8.0f;  // what RopeFactors::kLlama3 stretches by
};

[[nodiscard]] std::span<const ModelShape> named_shapes();
// nullptr for a name that is not in the list.
[[nodiscard]] const ModelShape* find_shape(std::string_view name);
// "tiny, llama-1b, ..."
[[nodiscard]] std::string shape_names();

// Errors: an unknown architecture, a size of zero or beyond any plausible model, heads that KV
// heads do not divide, an odd head, more experts used than there are, a vocabulary without room for
// bytes and special tokens.
[[nodiscard]] Status validate(const ModelShape& shape);

}  // namespace godwit::apps
