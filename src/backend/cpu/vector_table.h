// The functions of vector_ops.h as a plain table: the only part of it that files compiled for one
// instruction set may include.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

// y = x M: strides in floats, any sizes, y apart from x and M.
struct RowProduct {
  const float* x;  // [n_rows, n_inner]
  size_t x_stride;
  const float* m;  // [n_inner, n_cols]
  size_t m_stride;
  float* y;  // [n_rows, n_cols]
  size_t y_stride;
  size_t n_rows;
  size_t n_inner;
  size_t n_cols;
  float keep;  // of y, for add_row_product
};

// One row of a chunk, the slot-th, of one head with n values.
struct DeltaRow {
  const float* predicted;      // [n], by the matrix before the chunk, from the row's key
  const float* read;           // [n], from it too, by the row's query
  const float* key_weights;    // [slot], of the changes before it
  const float* query_weights;  // [slot + 1]
  const float* v;              // [n]
  size_t slot;
  size_t n;
  float decay;  // of the matrix before the chunk, up to this row
  float beta;
};

struct VectorOps {
  // out = x * f32(1 / sqrt(mean(x^2) + epsilon)) * weight. Squares are summed in f64 (each exact)
  // into lane (index mod 16), the lanes then halved 16 -> 8 -> 4 -> 2 -> 1. out may be x.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* out, size_t n);
  // y += x
  void (*add)(float* y, const float* x, size_t n);
  // y = x * factor; y may be x.
  void (*scale)(const float* x, float factor, float* y, size_t n);
  // out = gate / (1 + exp(-gate)) * up; out may be either.
  void (*silu_mul)(const float* gate, const float* up, float* out, size_t n);
  // out = 0.5 gate (1 + tanh(sqrt(2/pi) (gate + 0.044715 gate^3))) * up; out may be either.
  void (*gelu_mul)(const float* gate, const float* up, float* out, size_t n);
  // out = c / (1 + exp(-1.702 c)) * (d + 1) with c = min(gate, 7), d = up within [-7, 7]; out may
  // be either.
  void (*swiglu_clamped)(const float* gate, const float* up, float* out, size_t n);
  // y /= 1 + exp(-gate)
  void (*sigmoid_mul)(const float* gate, float* y, size_t n);
  // out = x * f32(1 / sqrt(sum(x^2) + epsilon)), summed as in rms_norm; out may be x.
  void (*unit_length)(const float* x, float epsilon, float* out, size_t n);
  // out = silu(sum over i < n_rows of taps[i] * rows[i]), one chain of fma in order of i.
  void (*convolve)(const float* const* rows, const float* const* taps, size_t n_rows, float* out,
                   size_t n);
  // y[r, j] = sum over i of x[r, i] m[i, j], one chain of fma in order of i; from 0, or from
  // keep * y[r, j].
  void (*row_product)(const RowProduct& product);
  void (*add_row_product)(const RowProduct& product);
  // change = beta (v - (decay predicted + sum over i < slot of key_weights[i] changes[i]));
  // out = decay read + sum over i <= slot of query_weights[i] changes[i]; sums are chains of fma in
  // order of i. changes: [slot + 1, n], the last of them written here.
  void (*delta_row)(const DeltaRow& row, float* changes, float* out);
  // y = cap * tanh(x / cap); y may be x.
  void (*softcap)(const float* x, float cap, float* y, size_t n);
  // out = exp(x), within 2e-7 relatively; 0 below -87.3, finite above 88.3. out may be x.
  void (*exp)(const float* x, float* out, size_t n);
  // Turns the first n_rot of head_dim numbers and copies the rest: pairs (2i, 2i+1), or
  // (i, i + n_rot/2). cos and sin: [n_rot / 2] each. n_rot even. out may be x.
  void (*rope_adjacent)(const float* x, const float* cos, const float* sin, float* out,
                        size_t n_rot, size_t head_dim);
  void (*rope_halves)(const float* x, const float* cos, const float* sin, float* out, size_t n_rot,
                      size_t head_dim);
  // As base/half.h: to nearest even, NaN quietened.
  void (*f32_to_f16)(const float* x, uint16_t* out, size_t n);
  void (*f16_to_f32)(const uint16_t* x, float* out, size_t n);
  void (*f32_to_bf16)(const float* x, uint16_t* out, size_t n);
  void (*bf16_to_f32)(const uint16_t* x, float* out, size_t n);
};

namespace generic {
extern const VectorOps kVectorOps;
}
namespace avx2 {
extern const VectorOps kVectorOps;
}
namespace avx512vnni {
extern const VectorOps kVectorOps;
}

}  // namespace godwit::cpu
