// How far a backend's step may lie from the oracle's, output by output, derived from the step's own
// weights and inputs rather than chosen:
//   activations in two planes of 8 bits: x is rounded at scale s = max|x| / 127 of its block and
//   what is left, at most s / 2, at s / 254: an error of variance (s / 254)^2 / 12 per value at
//   most; y = W x then errs by its sigma, and eight sigma bound it for all practical purposes
//   (never more than the worst case, sum |w| s / 508);
//   float arithmetic: 2e-5 of sum |w x|.
// The step check of `godwit check` compares with it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "os/thread_pool.h"
#include "program/program.h"

namespace godwit::testing {

struct StepContext {
  const program::Program& program;
  std::span<const std::span<const std::byte>> weights;  // file layout, by weight id
  // Values that share one scale when the backend rounds activations for weights of a type; 0 where
  // it does not round.
  size_t (*activation_block)(TensorType type);
  size_t activation_planes = 2;  // of eight bits; one has the scale s itself and its error
  ThreadPool& pool;
};

// Values of a buffer of one row.
using RowValues = std::vector<float>;

// What a step of one row works on.
struct StepRow {
  TokenId token;
  std::span<const RowValues> inputs;  // in the order of access_of(step).reads
  double attended_values_max = 0;     // max|v| over the positions attended, for Attend
};

// Bounds of each value of `output`, one row.
[[nodiscard]] std::vector<double> step_bound(const StepContext& context,
                                             const program::Operation& operation,
                                             program::BufferId output, const StepRow& row);

}  // namespace godwit::testing
