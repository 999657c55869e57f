// One mat-vec with its right answer: random blocks packed as the cpu backend packs them,
// activations rounded to planes as it rounds them, and y in double precision from the decoder of
// quant/, over the rounded activations and over those that were given. Every buffer ends at a page
// that may not be touched. For checks of kernels; computes nothing by a kernel itself.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "os/thread_pool.h"
#include "testing/guarded_buffer.h"

namespace godwit::testing {

struct MatVecShape {
  TensorType type = TensorType::kF32;
  size_t rows = 1;
  size_t cols = 1;
  size_t n_tokens = 1;
};

class MatVecProblem {
 public:
  // Weights and most activations are random; some tokens hold values that are hard to round: all
  // equal, all of the largest magnitude, one outlier, zeros, subnormals.
  MatVecProblem(const MatVecShape& shape, uint64_t seed);

  [[nodiscard]] const MatVecShape& shape() const { return shape_; }
  // What a kernel sees: the planes of n_tokens tokens are as many tokens of their own.
  [[nodiscard]] size_t n_planes() const { return cpu::activation_planes(kind_); }
  [[nodiscard]] size_t n_plane_tokens() const { return n_planes() * shape_.n_tokens; }

  // y [n, rows] of the first n plane tokens, all rows in one call.
  [[nodiscard]] std::vector<float> run(const cpu::MatVecKernel& kernel, size_t n) const;
  // y [n_plane_tokens, rows], rows shared out to the threads as the executor does.
  [[nodiscard]] std::vector<float> run_on(const cpu::MatVecKernel& kernel, ThreadPool& pool) const;

  // Whether `isa` rounds the activations to the same bytes.
  [[nodiscard]] bool rounds_alike(Isa isa) const;

  struct Answer {
    double y = 0;
    double magnitude = 0;  // sum of |w x|
  };
  // Over the rounded activations, [n_plane_tokens, rows].
  [[nodiscard]] const std::vector<Answer>& answers() const { return answers_; }

  // What rounding a token's activations did to its y, in exact arithmetic.
  struct Rounding {
    double error = 0;
    double bound = 0;
    double magnitude = 0;  // sum of |w x|, x unrounded
  };
  // [n_tokens, rows]; empty where nothing is rounded.
  [[nodiscard]] const std::vector<Rounding>& roundings() const { return roundings_; }

 private:
  void fill_activations(uint64_t seed);
  void solve();
  void solve_row(size_t row, std::span<const float> weights);
  void solve_rounding(size_t row, size_t token, std::span<const float> weights);
  [[nodiscard]] double activation(size_t plane_token, size_t col) const;
  [[nodiscard]] double scale(size_t plane_token, size_t col) const;
  [[nodiscard]] cpu::Activations quantize(Isa isa, std::span<std::byte> scratch) const;

  MatVecShape shape_;
  cpu::ActivationKind kind_;
  GuardedBuffer file_;
  GuardedBuffer packed_;
  GuardedBuffer x_;
  GuardedBuffer scratch_;
  cpu::Activations activations_;
  std::vector<Answer> answers_;
  std::vector<Rounding> roundings_;
};

}  // namespace godwit::testing
