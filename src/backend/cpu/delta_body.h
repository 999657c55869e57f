// The two kernels of the chunked delta rule (delta_chunk.h) in terms of sixteen lanes. Included by
// vector_body.h; unnamed namespace as in isa_rows.h.
//
// Computes: y = x M, or y = keep y + x M (row_product); one row of the triangular system that gives
//   the changes of a chunk, and what the row reads (delta_row).
// Shapes and types, Preconditions: vector_table.h. All f32.
// Bytes moved: M once per register tile of up to 4 rows, from the first-level cache for all but the
//   first; at 128 x 128 that is 64 KiB of a head. `changes` up to the row's own, once.
// Work split: none; the caller gives heads to threads.
// Arithmetic: exact. One chain of fma per element, in order of the inner index; neither tiles nor
//   rows of a call change it.
// Synchronisation: none.
// Reference: GenericLanes; tested against double precision.
#pragma once

#include <cstddef>

#include "backend/cpu/row_tiles.h"
#include "backend/cpu/vector_table.h"

namespace godwit::cpu {
namespace {

template <class L>
struct DeltaBody {
  enum class Start { kZero, kKept };

  template <Start kStart, size_t kRows, size_t kVectors>
  static void multiply(const RowProduct& p, size_t first_row, size_t j, size_t last) {
    const float* x[kRows];
    float* y[kRows];
    L sum[kRows][kVectors];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      x[r] = p.x + (first_row + r) * p.x_stride;
      y[r] = p.y + (first_row + r) * p.y_stride + j;
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        sum[r][c] =
            kStart == Start::kZero
                ? L::zero()
                : L::mul(L::load(y[r] + 16 * c, c + 1 < kVectors ? 16 : last), L::splat(p.keep));
      }
    }
    for (size_t i = 0; i < p.n_inner; ++i) {
      const float* const m = p.m + i * p.m_stride + j;
      L weight[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) weight[r] = L::splat(x[r][i]);
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        const L value = L::load(m + 16 * c, c + 1 < kVectors ? 16 : last);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) sum[r][c] = L::fma(weight[r], value, sum[r][c]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        L::store(sum[r][c], y[r] + 16 * c, c + 1 < kVectors ? 16 : last);
      }
    }
  }

  template <Start kStart, size_t kRows>
  struct Columns {
    const RowProduct& p;
    size_t row;
    size_t first;
    template <size_t kVectors>
    [[gnu::always_inline]] void run(size_t j, size_t last) const {
      multiply<kStart, kRows, kVectors>(p, row, first + j, last);
    }
  };

  // Columns outside rows: a strip of M then stays in the first-level cache.
  template <Start kStart>
  struct Strip {
    const RowProduct& p;
    size_t first;
    size_t n;
    template <size_t kRows>
    [[gnu::always_inline]] void run(size_t row) const {
      for_column_tiles<L::columns(kRows)>(n, Columns<kStart, kRows>{p, row, first});
    }
  };

  template <Start kStart>
  [[gnu::always_inline]] static void multiply_strips(const RowProduct& p) {
    constexpr size_t kStrip = 16 * L::columns(4);
    // One tile of rows has nothing to keep a strip for.
    const size_t width = p.n_rows > 4 ? kStrip : p.n_cols;
    for (size_t first = 0; first < p.n_cols; first += width) {
      const size_t n = p.n_cols - first < width ? p.n_cols - first : width;
      for_row_tiles(p.n_rows, Strip<kStart>{p, first, n});
    }
  }

  static void row_product(const RowProduct& p) { multiply_strips<Start::kZero>(p); }
  static void add_row_product(const RowProduct& p) { multiply_strips<Start::kKept>(p); }

  struct Row {
    const DeltaRow& in;
    float* changes;
    float* out;

    template <size_t kVectors>
    [[gnu::always_inline]] void run(size_t j, size_t last) const {
      const auto width = [last](size_t c) { return c + 1 < kVectors ? 16 : last; };
      const L decay = L::splat(in.decay);
      L predicted[kVectors];
      L read[kVectors];
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        predicted[c] = L::mul(L::load(in.predicted + j + 16 * c, width(c)), decay);
        read[c] = L::mul(L::load(in.read + j + 16 * c, width(c)), decay);
      }
      for (size_t i = 0; i < in.slot; ++i) {
        const L of_key = L::splat(in.key_weights[i]);
        const L of_query = L::splat(in.query_weights[i]);
#pragma GCC unroll 8
        for (size_t c = 0; c < kVectors; ++c) {
          const L change = L::load(changes + i * in.n + j + 16 * c, width(c));
          predicted[c] = L::fma(of_key, change, predicted[c]);
          read[c] = L::fma(of_query, change, read[c]);
        }
      }
      const L own = L::splat(in.query_weights[in.slot]);
      const L beta = L::splat(in.beta);
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        const L v = L::load(in.v + j + 16 * c, width(c));
        const L change = L::mul(L::sub(v, predicted[c]), beta);
        L::store(change, changes + in.slot * in.n + j + 16 * c, width(c));
        L::store(L::fma(own, change, read[c]), out + j + 16 * c, width(c));
      }
    }
  };

  static void delta_row(const DeltaRow& in, float* changes, float* out) {
    for_column_tiles<L::columns(2)>(in.n, Row{in, changes, out});
  }
};

}  // namespace
}  // namespace godwit::cpu
