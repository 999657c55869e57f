// The operations of vector_table.h in terms of sixteen lanes. Included once by each
// vector_<isa>.cpp with its own Lanes, so that all compute the same by construction. Unnamed
// namespace as in isa_rows.h.
//
// Computes, Shapes, Preconditions: vector_table.h, per function.
// Bytes moved: the operands once; all fit in the second-level cache at the sizes of one token.
// Work split: none; the caller passes its share.
// Arithmetic: exact. One operation per lane and element; sums as rms_norm says; exp: vector_exp.h.
// Reference: GenericLanes; tested against double precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/delta_body.h"
#include "backend/cpu/vector_exp.h"
#include "backend/cpu/vector_table.h"

namespace godwit::cpu {
namespace {

// f(i, count) for i = 0, 16, ... with count 16, then once with what is left.
template <class F>
[[gnu::always_inline]] inline void for_lanes(size_t n, F f) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) f(i, size_t{16});
  if (i < n) f(i, n - i);
}

template <class L>
struct VectorBody {
  static void rms_norm(const float* x, const float* weight, float epsilon, float* out, size_t n) {
    typename L::Squares squares;
    for_lanes(n, [&](size_t i, size_t count) { squares.add(L::load(x + i, count)); });
    const double mean = squares.sum() / static_cast<double>(n);
    const double root = __builtin_sqrt(mean + static_cast<double>(epsilon));
    const L factor = L::splat(static_cast<float>(1.0 / root));
    for_lanes(n, [&](size_t i, size_t count) {
      const L scaled = L::mul(L::load(x + i, count), factor);
      L::store(L::mul(scaled, L::load(weight + i, count)), out + i, count);
    });
  }

  static void add(float* y, const float* x, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      L::store(L::add(L::load(y + i, count), L::load(x + i, count)), y + i, count);
    });
  }

  static void scale(const float* x, float factor, float* y, size_t n) {
    const L f = L::splat(factor);
    for_lanes(n, [&](size_t i, size_t count) {
      L::store(L::mul(L::load(x + i, count), f), y + i, count);
    });
  }

  // x / (1 + exp(-slope))
  [[gnu::always_inline]] static L gated(L x, L slope) {
    const L e = exp_lanes(L::sub(L::zero(), slope));
    return L::div(x, L::add(L::splat(1.0f), e));
  }

  static void silu_mul(const float* gate, const float* up, float* out, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      const L g = L::load(gate + i, count);
      L::store(L::mul(gated(g, g), L::load(up + i, count)), out + i, count);
    });
  }

  // 0.5 (1 + tanh(u)) is 1 / (1 + exp(-2u)), which does not cancel.
  static void gelu_mul(const float* gate, const float* up, float* out, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      const L g = L::load(gate + i, count);
      const L cubic = L::fma(L::mul(g, g), L::splat(0.044715f), L::splat(1.0f));
      const L slope = L::mul(L::mul(g, L::splat(1.5957691216f)), cubic);  // 2 sqrt(2 / pi)
      L::store(L::mul(gated(g, slope), L::load(up + i, count)), out + i, count);
    });
  }

  // NaN passes through: min and max answer their second operand where they do not compare.
  static void swiglu_clamped(const float* gate, const float* up, float* out, size_t n) {
    const L most = L::splat(7.0f);
    const L least = L::splat(-7.0f);
    for_lanes(n, [&](size_t i, size_t count) {
      const L g = L::min(most, L::load(gate + i, count));
      const L u = L::max(least, L::min(most, L::load(up + i, count)));
      const L bent = gated(g, L::mul(g, L::splat(1.702f)));
      L::store(L::mul(bent, L::add(u, L::splat(1.0f))), out + i, count);
    });
  }

  static void sigmoid_mul(const float* gate, float* y, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      L::store(gated(L::load(y + i, count), L::load(gate + i, count)), y + i, count);
    });
  }

  static void unit_length(const float* x, float epsilon, float* out, size_t n) {
    typename L::Squares squares;
    for_lanes(n, [&](size_t i, size_t count) { squares.add(L::load(x + i, count)); });
    const double root = __builtin_sqrt(squares.sum() + static_cast<double>(epsilon));
    scale(x, static_cast<float>(1.0 / root), out, n);
  }

  static void convolve(const float* const* rows, const float* const* taps, size_t n_rows,
                       float* out, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      L sum = L::zero();
      for (size_t r = 0; r < n_rows; ++r) {
        sum = L::fma(L::load(taps[r] + i, count), L::load(rows[r] + i, count), sum);
      }
      L::store(gated(sum, sum), out + i, count);
    });
  }

  static void softcap(const float* x, float cap, float* y, size_t n) {
    const L c = L::splat(cap);
    for_lanes(n, [&](size_t i, size_t count) {
      L::store(softcap_lanes(L::load(x + i, count), c), y + i, count);
    });
  }

  static void exp(const float* x, float* out, size_t n) {
    for_lanes(n, [&](size_t i, size_t count) {
      L::store(exp_lanes(L::load(x + i, count)), out + i, count);
    });
  }

  static void copy_rest(const float* x, float* out, size_t n_rot, size_t head_dim) {
    if (out == x) return;
    for (size_t i = n_rot; i < head_dim; ++i) out[i] = x[i];
  }

  static void rope_adjacent(const float* x, const float* cos, const float* sin, float* out,
                            size_t n_rot, size_t head_dim) {
    for (size_t i = 0; i < n_rot / 2; ++i) {
      const float first = x[2 * i];
      const float second = x[2 * i + 1];
      out[2 * i] = first * cos[i] - second * sin[i];
      out[2 * i + 1] = first * sin[i] + second * cos[i];
    }
    copy_rest(x, out, n_rot, head_dim);
  }

  static void rope_halves(const float* x, const float* cos, const float* sin, float* out,
                          size_t n_rot, size_t head_dim) {
    const size_t half = n_rot / 2;
    for_lanes(half, [&](size_t i, size_t count) {
      const L first = L::load(x + i, count);
      const L second = L::load(x + half + i, count);
      const L c = L::load(cos + i, count);
      const L s = L::load(sin + i, count);
      L::store(L::sub(L::mul(first, c), L::mul(second, s)), out + i, count);
      L::store(L::add(L::mul(first, s), L::mul(second, c)), out + half + i, count);
    });
    copy_rest(x, out, n_rot, head_dim);
  }

  static void f32_to_f16(const float* x, uint16_t* out, size_t n) {
    for_lanes(n,
              [&](size_t i, size_t count) { L::store_f16(L::load(x + i, count), out + i, count); });
  }
  static void f16_to_f32(const uint16_t* x, float* out, size_t n) {
    for_lanes(n,
              [&](size_t i, size_t count) { L::store(L::load_f16(x + i, count), out + i, count); });
  }
  static void f32_to_bf16(const float* x, uint16_t* out, size_t n) {
    for_lanes(
        n, [&](size_t i, size_t count) { L::store_bf16(L::load(x + i, count), out + i, count); });
  }
  static void bf16_to_f32(const uint16_t* x, float* out, size_t n) {
    for_lanes(
        n, [&](size_t i, size_t count) { L::store(L::load_bf16(x + i, count), out + i, count); });
  }

  static constexpr VectorOps kTable = {.rms_norm = rms_norm,
                                       .add = add,
                                       .scale = scale,
                                       .silu_mul = silu_mul,
                                       .gelu_mul = gelu_mul,
                                       .swiglu_clamped = swiglu_clamped,
                                       .sigmoid_mul = sigmoid_mul,
                                       .unit_length = unit_length,
                                       .convolve = convolve,
                                       .row_product = DeltaBody<L>::row_product,
                                       .add_row_product = DeltaBody<L>::add_row_product,
                                       .delta_row = DeltaBody<L>::delta_row,
                                       .softcap = softcap,
                                       .exp = exp,
                                       .rope_adjacent = rope_adjacent,
                                       .rope_halves = rope_halves,
                                       .f32_to_f16 = f32_to_f16,
                                       .f16_to_f32 = f16_to_f32,
                                       .f32_to_bf16 = f32_to_bf16,
                                       .bf16_to_f32 = bf16_to_f32};
};

}  // namespace
}  // namespace godwit::cpu
