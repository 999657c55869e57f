// One mat-vec in guarded buffers, for matvec_test.cpp: file rows of random or chosen blocks,
// packed; floats, quantised; and the answer in double from the decoder of quant/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "base/bits.h"
#include "base/random.h"
#include "quant/formats.h"
#include "testing/guarded_buffer.h"

namespace godwit::cpu {

struct MatVecShape {
  TensorType type;
  size_t rows;
  size_t cols;
  size_t n_tokens;
};

// Changes the file's bytes before they are packed.
using EditBlocks = std::function<void(std::span<std::byte> file)>;

class MatVecProblem {
 public:
  MatVecProblem(const MatVecShape& shape, uint64_t seed, const EditBlocks& edit)
      : shape_(shape),
        kind_(find_matvec_kernel(shape.type, Isa::kGeneric)->activation),
        file_(shape.rows * row_bytes(shape.type, shape.cols)),
        packed_(round_up(shape.rows, kTileRows) *
                find_packing(shape.type)->packed_row_bytes(shape.cols)),
        x_(shape.n_tokens * shape.cols * sizeof(float)),
        scratch_(activation_bytes(kind_, shape.n_tokens, shape.cols)) {
    RandomStream random(seed);
    const TensorGeometry& geometry = tensor_geometry(shape.type);
    const std::span<std::byte> file = file_.bytes();
    for (size_t at = 0; at < file.size(); at += geometry.block_bytes) {
      quant::find_format(shape.type)->random_block(random, 1.0f, &file[at]);
    }
    if (edit) edit(file);
    find_packing(shape.type)->pack(file.data(), shape.rows, shape.cols, packed_.bytes().data());
    for (float& value : x_.as<float>()) value = static_cast<float>(random.bell());
    quantize(Isa::kGeneric);
  }

  [[nodiscard]] std::span<float> x() const { return x_.as<float>(); }
  [[nodiscard]] const Activations& activations() const { return activations_; }
  [[nodiscard]] std::span<const std::byte> scratch() const { return scratch_.bytes(); }

  // Fills the activations anew from x().
  void quantize(Isa isa) {
    const float* x = x_.as<float>().data();
    activations_ =
        layout_activations(kind_, x, shape_.cols, shape_.n_tokens, shape_.cols, scratch_.bytes());
    quantize_activations(kind_, activations_, x, shape_.cols, shape_.cols, {0, shape_.n_tokens},
                         isa);
  }

  // y [n_tokens, rows] of the first n_tokens, in pieces of `step` rows.
  [[nodiscard]] std::vector<float> run(const MatVecKernel& kernel, size_t n_tokens,
                                       size_t step) const {
    const testing::GuardedBuffer y(n_tokens * shape_.rows * sizeof(float));
    for (size_t row = 0; row < shape_.rows; row += step) {
      kernel.run({.weights = packed_.bytes().data(),
                  .rows = shape_.rows,
                  .cols = shape_.cols,
                  .row_begin = row,
                  .row_end = std::min(shape_.rows, row + step),
                  .x = activations_,
                  .n_tokens = n_tokens,
                  .y = y.as<float>().data(),
                  .y_stride = shape_.rows});
    }
    return {y.as<float>().begin(), y.as<float>().end()};
  }

  struct Answer {
    double y = 0;
    double magnitude = 0;  // sum of |w * x|
  };

  // The answers over the quantised activations, [n_tokens, rows].
  [[nodiscard]] std::vector<Answer> answers() const {
    std::vector<Answer> all(shape_.n_tokens * shape_.rows);
    std::vector<float> weights(shape_.cols);
    const size_t bytes = row_bytes(shape_.type, shape_.cols);
    for (size_t r = 0; r < shape_.rows; ++r) {
      quant::decode_row(shape_.type, file_.bytes().subspan(r * bytes, bytes), weights);
      for (size_t t = 0; t < shape_.n_tokens; ++t) {
        Answer& answer = all[t * shape_.rows + r];
        for (size_t c = 0; c < shape_.cols; ++c) {
          const double product = static_cast<double>(weights[c]) * activation(t, c);
          answer.y += product;
          answer.magnitude += std::fabs(product);
        }
      }
    }
    return all;
  }

 private:
  [[nodiscard]] double activation(size_t t, size_t c) const {
    const Activations& a = activations_;
    if (kind_ == ActivationKind::kF32) return static_cast<double>(a.f32[t * a.f32_stride + c]);
    const size_t block = kind_ == ActivationKind::kQ8Block32 ? 32 : 256;
    return static_cast<double>(a.scales[t * a.scale_stride + c / block]) * a.q[t * a.q_stride + c];
  }

  MatVecShape shape_;
  ActivationKind kind_;
  testing::GuardedBuffer file_;
  testing::GuardedBuffer packed_;
  testing::GuardedBuffer x_;
  testing::GuardedBuffer scratch_;
  Activations activations_;
};

}  // namespace godwit::cpu
