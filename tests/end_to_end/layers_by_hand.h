// A Gated DeltaNet layer and the gated half of experts, written once more from their formulas for a
// whole prompt at once, each with the mistakes that are easily made. Without one they must give
// what the fixtures hold; with one they must not (fixture_mutants_test.cpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/step.h"

namespace godwit::testing {

enum class DeltaMistake {
  kNone,
  kPredictsBeforeDecay,
  kReadsBeforeUpdate,
  kSiluBeforeConvolution,
  kTapsNewestFirst,
  kKeysOfAnyLength,
  kSigmoidOfZ,
  kGateBeforeNorm,
  kSiluOfB,
  kDecayWithoutSoftplus,
};

// Rows of the step's buffers from position 0 on, and its weights. Layout kSplit only.
struct DeltaPrompt {
  size_t n_rows = 0;
  std::vector<float> qkv;      // [n_rows, channels]
  std::vector<float> z;        // [n_rows, n_heads, head_dim]
  std::vector<float> b;        // [n_rows, n_heads], or with a's as the step has them
  std::vector<float> a;        // [n_rows, n_heads], or nothing
  std::vector<float> conv;     // [channels, taps]
  std::vector<float> dt_bias;  // [n_heads]
  std::vector<float> decay;    // [n_heads]
  std::vector<float> norm;     // [head_dim]
};
// [n_rows, n_heads, head_dim]
[[nodiscard]] std::vector<float> delta_by_hand(const program::Recurrent& step,
                                               const DeltaPrompt& prompt, DeltaMistake mistake);

enum class ClampMistake { kNone, kNotClamped, kValuesNotClamped, kPlainSlope, kNothingAdded };

// What gpt-oss makes of a gate and a value.
[[nodiscard]] double clamped_by_hand(double gate, double up, ClampMistake mistake);

}  // namespace godwit::testing
