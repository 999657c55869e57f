// What a phase must leave, computed in double on the host from the words that the phase before left
// on the card: rows and heads picked at random, weights and KV known by their index.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/cuda/persistent/bench/model.h"

namespace godwit::cuda::persistent {

struct Deviation {
  double squares = 0.0;    // of the differences
  double reference = 0.0;  // of what was expected
  double worst = 0.0;      // |difference|
  uint32_t n = 0;

  void add(double got, double want);
  // Relative in the 2-norm.
  [[nodiscard]] double relative() const;
};

// `words` is a copy of the card's after phases 0..phase ran; `logits` likewise.
[[nodiscard]] Deviation compare_phase(const BenchModel& model, size_t phase, uint32_t position,
                                      std::span<const uint32_t> words,
                                      std::span<const float> logits, uint32_t n_samples);
// The token's own K and V as stored against the words.
[[nodiscard]] Deviation compare_append(const BenchModel& model, size_t phase, uint32_t position,
                                       std::span<const uint32_t> words,
                                       std::span<const uint16_t> layer_cache);

}  // namespace godwit::cuda::persistent
