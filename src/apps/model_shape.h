// The sizes of a dense transformer, and the shapes of well-known models by name, for `synth`:
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

struct ModelShape {
  std::string name;
  std::string arch = "llama";  // one of synth_archs()
  uint32_t dim = 0;
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;
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
// heads do not divide, an odd head, a vocabulary without room for bytes and special tokens.
[[nodiscard]] Status validate(const ModelShape& shape);

}  // namespace godwit::apps
