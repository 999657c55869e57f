// The step kinds of the oracle over plain double arrays. No state, no allocation policy: what each
// computes is its formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/tensor_type.h"
#include "os/thread_pool.h"
#include "program/program.h"

namespace godwit::reference {

// Row-major [n_rows, width].
struct Matrix {
  size_t width = 0;
  std::vector<double> values;

  [[nodiscard]] std::span<double> row(size_t i) { return {values.data() + i * width, width}; }
  [[nodiscard]] std::span<const double> row(size_t i) const {
    return {values.data() + i * width, width};
  }
};

// KV of one layer, [n_positions, n_kv_heads, head_dim], keys already turned by RoPE.
struct KvCache {
  std::vector<double> k;
  std::vector<double> v;
};

// Bytes of a weight in file layout.
struct WeightView {
  TensorType type = TensorType::kF32;
  uint64_t rows = 0;
  uint64_t cols = 0;
  std::span<const std::byte> bytes;
};

// out = decoded row `row` of the weight.
void decode_weight_row(const WeightView& weight, uint64_t row, std::span<double> out);

// y[t, r] = sum over c of W[r, c] * x[t, c], plus bias[r] if there is one.
struct MatMul {
  WeightView weight;
  const WeightView* bias = nullptr;
  const Matrix* x = nullptr;  // [n_rows, cols]
  size_t n_rows = 0;
};
void mat_mul(const MatMul& args, ThreadPool& pool, Matrix& y);

// y = x / sqrt(mean(x^2) + epsilon) * weight; y may be x.
void rms_norm(std::span<const double> x, std::span<const double> weight, double epsilon,
              std::span<double> y);

[[nodiscard]] double sigmoid(double x);

[[nodiscard]] double silu(double x);
// What a gate makes of `up` (program::Activation).
[[nodiscard]] double activate(program::Activation activation, double gate, double up);

// cap * tanh(x / cap); x itself where cap is 0.
[[nodiscard]] double softcapped(double x, double cap);

// What a query at a position is multiplied by (program::PositionScale).
[[nodiscard]] double query_factor(const program::PositionScale& scale, uint64_t position);

// Turns the leading rope.n_rot dimensions of one head for a position.
void rope_head(const program::Rope& rope, program::RopePairs pairs, uint64_t position,
               std::span<double> head);

// Keys or values of a head as a cache of that type keeps them; F32 keeps the doubles.
void round_kv_to(TensorType type, std::span<const double> x, std::span<double> out);

// One query head over positions [first_position, end_position).
struct HeadAttention {
  std::span<const double> q;  // [head_dim], turned
  const KvCache* kv = nullptr;
  size_t kv_head = 0;
  size_t n_kv_heads = 0;
  size_t first_position = 0;
  size_t end_position = 0;
  double scale = 1.0;
  double softcap = 0.0;  // 0: none
  std::optional<double> sink = {};
};
void attend_head(const HeadAttention& args, std::span<double> out);

}  // namespace godwit::reference
