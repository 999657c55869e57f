// The hyper-parameters that dense Llama-family files share, read from metadata under
// "<architecture>.": counts, dimensions, norm epsilon, RoPE. Checked for sense here, so that an
// architecture file may multiply them without thought.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "gguf/file.h"

namespace godwit::model {

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };

struct RopeConfig {
  double base = 10000.0;
  uint32_t n_rot = 0;  // leading dimensions of a head that turn; even
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // context extension factor, >= 1 in practice, > 0
  uint64_t original_context = 0;  // positions the model was trained with before extension
  double yarn_ext_factor = 1.0;
  double yarn_attn_factor = 1.0;
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
};

struct Config {
  std::string architecture;
  uint32_t n_layers = 0;
  uint32_t dim = 0;
  uint32_t ffn = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint64_t context = 0;
  float norm_epsilon = 0.0f;
  RopeConfig rope;
};

// Errors: a missing or mistyped key, a value out of its range, dimensions that do not fit together.
[[nodiscard]] Result<Config> read_config(const gguf::File& file);

}  // namespace godwit::model
