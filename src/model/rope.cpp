#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace godwit::model {
namespace {

// The (fractional) pair index whose wavelength makes `turns` turns within the original context.
double pair_of_turns(const RopeConfig& config, double turns) {
  const double wavelength =
      static_cast<double>(config.original_context) / (turns * 2 * std::numbers::pi);
  return config.n_rot * std::log(wavelength) / (2 * std::log(config.base));
}

// YaRN's "mscale", over that of "mscale_all_dim".
double yarn_magnitude(const RopeConfig& config) {
  if (config.yarn_ext_factor == 0.0 || config.factor <= 1.0) return 1.0;
  const double log = 0.1 * std::log(config.factor);
  return (1.0 + log) / (1.0 + config.yarn_log_multiplier * log);
}

}  // namespace

program::Rope make_rope(const RopeConfig& config, std::span<const float> factors) {
  program::Rope rope{
      .n_rot = config.n_rot, .frequencies = {}, .magnitude = config.attention_factor};
  double low = 0;
  double high = 0;
  if (config.scaling == RopeScaling::kYarn) {
    const double last = config.n_rot - 1;
    low = pair_of_turns(config, config.yarn_beta_fast);
    high = pair_of_turns(config, config.yarn_beta_slow);
    if (config.yarn_whole_ends) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::clamp(low, 0.0, last);
    high = std::clamp(high, 0.0, last);
    rope.magnitude *= config.yarn_magnitude.value_or(yarn_magnitude(config));
  }
  for (uint32_t i = 0; i < config.n_rot / 2; ++i) {
    double frequency = std::pow(config.base, -2.0 * i / config.n_rot);
    if (!factors.empty()) frequency /= static_cast<double>(factors[i]);
    switch (config.scaling) {
      case RopeScaling::kNone:
      case RopeScaling::kLongRope:  // all of it lies in `factors` and the magnitude
        break;
      case RopeScaling::kLinear:
        frequency /= config.factor;
        break;
      case RopeScaling::kYarn: {
        // 1 for fast dimensions, which keep their frequency; 0 for slow ones, which interpolate.
        const double ramp = 1.0 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
        const double kept = ramp * config.yarn_ext_factor;
        frequency = frequency / config.factor * (1.0 - kept) + frequency * kept;
        break;
      }
    }
    rope.frequencies.push_back(frequency);
  }
  return rope;
}

}  // namespace godwit::model
