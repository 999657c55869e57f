// RoPE frequencies with the context-extension scalings, in double precision, once at load.
#pragma once

#include <span>

#include "model/config.h"
#include "program/program.h"

namespace godwit::model {

// Frequencies of RoPE (Su et al. 2021): base^(-2i/n_rot), and their scalings:
// linear (Chen et al. 2023): divided by the factor. YaRN (Peng et al. 2023, "NTK by parts"): a ramp
// between the two over the dimensions whose wavelengths lie between beta_slow and beta_fast turns
// per original context (rounded outwards, unless the model does not), and the magnitude (1 + 0.1 ln
// factor) / (1 + 0.1 log_multiplier ln factor) unless the file gives another. All magnitudes are
// times the file's attention factor. `factors` ([n_rot / 2]; empty for none) divide each frequency:
// the form in which files carry Llama 3's scaling (rope_freqs.weight) and LongRoPE's
// (rope_factors_long.weight and _short).
[[nodiscard]] program::Rope make_rope(const RopeConfig& config, std::span<const float> factors);

}  // namespace godwit::model
