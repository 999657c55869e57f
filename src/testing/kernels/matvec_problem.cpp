#include "testing/kernels/matvec_problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bits.h"
#include "base/random.h"
#include "quant/formats.h"

namespace godwit::testing {
namespace {

using cpu::ActivationKind;
using cpu::kTileRows;

// A block below this counts as zero (activation_kernels.h).
constexpr double kSmallestMagnitude = 0x1p-100;

// The col-th value of a token whose number says what kind of token it is.
float hard_value(size_t token, size_t col, RandomStream& random) {
  const auto bell = static_cast<float>(random.bell());
  switch (token) {
    case 1:
      return 0.75f;
    case 2:
      return col % 7 < 5 ? 3.0f : -3.0f;
    case 3:
      return col % 97 == 5 ? 1000.0f : 0.01f * bell;
    case 4:
      return 0.0f;
    case 5:
      return 1e-30f * bell;
    case 6:
      return 1e-40f * bell;
    case 7:
      return col < 32 ? 0.0f : bell;
    default:
      return bell;
  }
}

}  // namespace

MatVecProblem::MatVecProblem(const MatVecShape& shape, uint64_t seed)
    : shape_(shape),
      kind_(cpu::find_matvec_kernel(shape.type, Isa::kGeneric)->activation),
      file_(shape.rows * row_bytes(shape.type, shape.cols)),
      packed_(round_up(shape.rows, kTileRows) *
              cpu::find_packing(shape.type)->packed_row_bytes(shape.cols)),
      x_(shape.n_tokens * shape.cols * sizeof(float)),
      scratch_(cpu::activation_bytes(kind_, n_plane_tokens(), shape.cols)) {
  RandomStream random(seed);
  const std::span<std::byte> file = file_.bytes();
  const quant::Format& format = *quant::find_format(shape.type);
  for (size_t at = 0; at < file.size(); at += tensor_geometry(shape.type).block_bytes) {
    format.random_block(random, 1.0f, &file[at]);
  }
  cpu::find_packing(shape.type)->pack(file.data(), shape.rows, shape.cols, packed_.bytes().data());
  fill_activations(seed + 1);
  activations_ = quantize(Isa::kGeneric, scratch_.bytes());
  solve();
}

void MatVecProblem::fill_activations(uint64_t seed) {
  RandomStream random(seed);
  const std::span<float> x = x_.as<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = hard_value(i / shape_.cols, i % shape_.cols, random);
  }
}

cpu::Activations MatVecProblem::quantize(Isa isa, std::span<std::byte> scratch) const {
  const float* const x = x_.as<float>().data();
  const size_t cols = shape_.cols;
  const cpu::Activations layout =
      cpu::layout_activations(kind_, x, cols, n_plane_tokens(), cols, scratch);
  cpu::quantize_planes(kind_, layout, x, cols, shape_.n_tokens, cols, {0, shape_.n_tokens}, isa);
  return layout;
}

bool MatVecProblem::rounds_alike(Isa isa) const {
  const GuardedBuffer scratch(scratch_.bytes().size());
  (void)quantize(isa, scratch.bytes());
  return std::memcmp(scratch.bytes().data(), scratch_.bytes().data(), scratch.bytes().size()) == 0;
}

std::vector<float> MatVecProblem::run(const cpu::MatVecKernel& kernel, size_t n) const {
  const GuardedBuffer y(n * shape_.rows * sizeof(float));
  kernel.run({.weights = packed_.bytes().data(),
              .rows = shape_.rows,
              .cols = shape_.cols,
              .row_begin = 0,
              .row_end = shape_.rows,
              .x = activations_,
              .n_tokens = n,
              .y = y.as<float>().data(),
              .y_stride = shape_.rows});
  return {y.as<float>().begin(), y.as<float>().end()};
}

std::vector<float> MatVecProblem::run_on(const cpu::MatVecKernel& kernel, ThreadPool& pool) const {
  const size_t n_tokens = n_plane_tokens();
  const GuardedBuffer y(n_tokens * shape_.rows * sizeof(float));
  const size_t tiles = div_up(shape_.rows, kTileRows);
  const size_t n_threads = pool.size();
  const size_t packed_row_bytes = cpu::find_packing(shape_.type)->packed_row_bytes(shape_.cols);
  pool.run([&](size_t thread) {
    const size_t begin = tiles * thread / n_threads * kTileRows;
    const size_t end = std::min(shape_.rows, tiles * (thread + 1) / n_threads * kTileRows);
    if (begin >= end) return;
    kernel.run({.weights = packed_.bytes().data() + begin * packed_row_bytes,
                .rows = end - begin,
                .cols = shape_.cols,
                .row_begin = 0,
                .row_end = end - begin,
                .x = activations_,
                .n_tokens = n_tokens,
                .y = y.as<float>().data() + begin,
                .y_stride = shape_.rows});
  });
  return {y.as<float>().begin(), y.as<float>().end()};
}

double MatVecProblem::activation(size_t plane_token, size_t col) const {
  const cpu::Activations& a = activations_;
  if (kind_ == ActivationKind::kF32) {
    return static_cast<double>(a.f32[plane_token * a.f32_stride + col]);
  }
  return scale(plane_token, col) * a.q[plane_token * a.q_stride + col];
}

double MatVecProblem::scale(size_t plane_token, size_t col) const {
  const cpu::Activations& a = activations_;
  return static_cast<double>(
      a.scales[plane_token * a.scale_stride + col / cpu::activation_block(kind_)]);
}

void MatVecProblem::solve() {
  answers_.resize(n_plane_tokens() * shape_.rows);
  if (n_planes() > 1) roundings_.resize(shape_.n_tokens * shape_.rows);
  std::vector<float> weights(shape_.cols);
  const size_t bytes = row_bytes(shape_.type, shape_.cols);
  for (size_t row = 0; row < shape_.rows; ++row) {
    quant::decode_row(shape_.type, file_.bytes().subspan(row * bytes, bytes), weights);
    solve_row(row, weights);
  }
}

void MatVecProblem::solve_row(size_t row, std::span<const float> weights) {
  for (size_t t = 0; t < n_plane_tokens(); ++t) {
    Answer& answer = answers_[t * shape_.rows + row];
    for (size_t c = 0; c < shape_.cols; ++c) {
      const double product = static_cast<double>(weights[c]) * activation(t, c);
      answer.y += product;
      answer.magnitude += std::fabs(product);
    }
  }
  if (n_planes() == 1) return;
  for (size_t t = 0; t < shape_.n_tokens; ++t) solve_rounding(row, t, weights);
}

// The second plane rounds at its own scale s, so it is off by s / 2 at most; what it was given is
// x less the first plane, whose product and difference each rounded to a float.
void MatVecProblem::solve_rounding(size_t row, size_t token, std::span<const float> weights) {
  Rounding& rounding = roundings_[token * shape_.rows + row];
  const size_t second = shape_.n_tokens + token;
  double exact = 0;
  for (size_t c = 0; c < shape_.cols; ++c) {
    const auto weight = static_cast<double>(weights[c]);
    const auto x = static_cast<double>(x_.as<float>()[token * shape_.cols + c]);
    exact += weight * x;
    rounding.magnitude += std::fabs(weight * x);
    rounding.bound += std::fabs(weight) * (0.5001 * scale(second, c) + kSmallestMagnitude) +
                      0x1p-23 * std::fabs(weight * x);
  }
  rounding.error = std::fabs(answers_[token * shape_.rows + row].y +
                             answers_[second * shape_.rows + row].y - exact);
}

}  // namespace godwit::testing
