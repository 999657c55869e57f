// The hyper-parameters that dense decoders share, read from metadata under "<architecture>.":
// counts, dimensions, norm epsilon, RoPE, windows, caps and scales. Checked for sense here, so that
// an architecture file may multiply them without thought.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace godwit::model {

enum class RopeScaling : uint8_t { kNone, kLinear, kYarn, kLongRope };

struct RopeConfig {
  double base = 10000.0;
  uint32_t n_rot = 0;  // leading dimensions of a head that turn; even
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // context extension factor, >= 1 in practice, > 0
  uint64_t original_context = 0;  // positions the model was trained with before extension
  double attention_factor = 1.0;  // of sine and cosine, whatever the scaling
  double yarn_ext_factor = 1.0;
  double yarn_log_multiplier = 0.0;           // "mscale_all_dim"; 0: not given
  std::optional<double> yarn_magnitude = {};  // in place of the one that follows from the factor
  // Whether the ends of YaRN's ramp are rounded outwards to whole pairs.
  bool yarn_whole_ends = true;
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
};

// Which layers attend to a window of positions only. Files name the layers one by one, or a period
// (every n-th layer attends to all), or leave it to the architecture.
struct SlidingWindow {
  uint64_t length = 0;       // positions; 0: no layer has one
  std::vector<bool> layers;  // [n_layers], or empty
  uint32_t period = 0;       // 0: not given
  double rope_base = 0.0;    // of the layers with a window; 0: not given

  // `default_period`: the architecture's, where the file names neither layers nor a period; 0: all
  // layers have the window.
  [[nodiscard]] bool covers(uint32_t layer, uint32_t default_period) const {
    if (length == 0) return false;
    if (layer < layers.size()) return layers[layer];
    const uint32_t every = period != 0 ? period : default_period;
    return every == 0 || (layer + 1) % every != 0;
  }
};

// Routed experts; all 0 in a dense model.
struct Experts {
  uint32_t n_experts = 0;
  uint32_t n_used = 0;
  uint32_t ffn = 0;
  uint32_t shared_ffn = 0;  // 0: no shared expert, or as wide as the others
};

// Gated DeltaNet layers; all 0 where there are none.
struct DeltaNet {
  uint32_t taps = 0;
  uint32_t head_dim = 0;  // of keys and values
  uint32_t n_heads = 0;   // of values
  uint32_t n_key_heads = 0;
  uint32_t attention_every = 0;  // every n-th layer attends, where the file does not name them:
  std::vector<bool> recurrent;   // [n_layers], or empty

  [[nodiscard]] bool covers(uint32_t layer) const {
    return recurrent.empty() ? (layer + 1) % attention_every != 0 : recurrent[layer];
  }
};

// Factors that some architectures multiply in; 0: not given.
struct Scales {
  double embedding = 0.0;
  double residual = 0.0;
  double attention = 0.0;
  double logits = 0.0;  // a divisor
  double temperature = 0.0;
};

struct Config {
  std::string architecture;
  uint32_t n_layers = 0;
  uint32_t dim = 0;
  uint32_t ffn = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint64_t context = 0;      // positions the model was made for
  uint64_t n_positions = 0;  // that sequences will reach here
  float norm_epsilon = 0.0f;
  RopeConfig rope;
  SlidingWindow window;
  Scales scales;
  Experts experts;
  DeltaNet delta;
  uint32_t n_extra_layers = 0;  // after n_layers: heads that predict further tokens
  bool with_mtp = false;        // whether the first of these is wanted
  std::optional<double> attention_softcap;
  std::optional<double> logit_softcap;
};

// Errors: a missing or mistyped key, a value out of its range, dimensions that do not fit together.
[[nodiscard]] Result<Config> read_config(const gguf::File& file);

// Errors: no width of the gated feed-forward, which a mixture of experts may lack.
[[nodiscard]] Status check_feed_forward(const Config& config);

}  // namespace godwit::model
