// The attention kernels in terms of sixteen lanes (vector_lanes_*.h). Included once by each
// attention_<isa>.cpp. Unnamed namespace as in isa_rows.h.
//
// Computes: for each row (query head of a token) and one block of positions j in [begin, end):
//   s_j = scale * sum_d q_d K_jd, softcapped; m = max s; l = sum exp(s_j - m);
//   acc_d = sum_j exp(s_j - m) V_jd. Then merges blocks: states with a common maximum.
// Shapes and types: attention_table.h; K and V f32, f16 or bf16, all arithmetic f32.
// Preconditions: K tiles are readable to the end of the last tile touched; V to the last position;
//   what K holds outside [begin, end) has no influence, whatever it is. attention.cpp keeps them.
// Bytes moved: K and V of the block once for all rows: 2 * positions * head_dim * element bytes;
//   a block (64 KiB of f16 at head_dim 128) stays in the second-level cache between passes.
// Work split: rows in register tiles of up to 4, against 1 to 8 vectors of positions (scores) or
//   of dimensions (accumulation).
// Arithmetic: exact. A score is one chain of fma in order of d, an accumulator one chain in order
//   of positions, l sixteen lanes by position mod 16, then halved; exp: vector_exp.h. None of it
//   depends on which rows are computed together.
// Synchronisation: none.
// Reference: GenericLanes; tested against softmax attention in double precision.
// Tried and rejected: K by position with lanes over d: needs a sum across lanes per score.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_ahead.h"
#include "backend/cpu/attention_quantized_body.h"
#include "backend/cpu/attention_table.h"
#include "backend/cpu/row_tiles.h"
#include "backend/cpu/vector_exp.h"

namespace godwit::cpu {
namespace {

template <class L>
struct F32Elements {
  using Element = float;
  [[gnu::always_inline]] static L load(const float* p, size_t n) { return L::load(p, n); }
};
template <class L>
struct F16Elements {
  using Element = uint16_t;
  [[gnu::always_inline]] static L load(const uint16_t* p, size_t n) { return L::load_f16(p, n); }
};
template <class L>
struct Bf16Elements {
  using Element = uint16_t;
  [[gnu::always_inline]] static L load(const uint16_t* p, size_t n) { return L::load_bf16(p, n); }
};

template <class L, class E>
struct Scores {
  using Element = typename E::Element;

  // kRows x kTiles x 16 scores, from K tile `tile` on.
  template <size_t kRows, size_t kTiles>
  static void multiply(const BlockJob& job, size_t first_row, size_t tile, Fetcher& fetcher) {
    const size_t dim = job.head_dim;
    const Element* const k = static_cast<const Element*>(job.k) + tile * dim * kKvTile;
    const float* q[kRows];
    L sum[kRows][kTiles];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      q[r] = job.rows[first_row + r].q;
#pragma GCC unroll 8
      for (size_t c = 0; c < kTiles; ++c) sum[r][c] = L::zero();
    }
    for (size_t d = 0; d < dim; ++d) {
      fetcher.fetch();
      L key[kTiles];
#pragma GCC unroll 8
      for (size_t c = 0; c < kTiles; ++c) {
        key[c] = E::load(k + (c * dim + d) * kKvTile, kKvTile);
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const L query = L::splat(q[r][d]);
#pragma GCC unroll 8
        for (size_t c = 0; c < kTiles; ++c) sum[r][c] = L::fma(query, key[c], sum[r][c]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      float* const out = job.scores + (first_row + r) * job.block;
#pragma GCC unroll 8
      for (size_t c = 0; c < kTiles; ++c) {
        L::store(sum[r][c], out + (tile + c) * kKvTile, kKvTile);
      }
    }
  }

  // kTiles tiles at a time for all rows, so that K comes from the first-level cache for all but the
  // first.
  template <size_t kTiles>
  struct Columns {
    const BlockJob& job;
    size_t tile;
    Fetcher& fetcher;
    template <size_t kRows>
    [[gnu::always_inline]] void run(size_t row) const {
      Fetcher none;
      for_column_tiles<L::columns(kRows)>(kTiles * kKvTile,
                                          Tiles<kRows>{job, row, tile, row == 0 ? fetcher : none});
    }
  };
  template <size_t kRows>
  struct Tiles {
    const BlockJob& job;
    size_t row;
    size_t first_tile;
    Fetcher& fetcher;
    template <size_t kTiles>
    [[gnu::always_inline]] void run(size_t column, size_t) const {
      multiply<kRows, kTiles>(job, row, first_tile + column / kKvTile, fetcher);
    }
  };

  static void run(const BlockJob& job) {
    const Span seen = seen_by_rows(job);
    size_t tile = seen.begin / kKvTile;
    const size_t last = (seen.end + kKvTile - 1) / kKvTile;
    constexpr size_t kAtOnce = L::columns(1);
    const size_t per_pass = L::columns(next_rows(job.n_rows));
    Fetcher fetcher(job.while_scoring, (last - tile) * job.head_dim / per_pass);
    for (; tile + kAtOnce <= last; tile += kAtOnce) {
      for_row_tiles(job.n_rows, Columns<kAtOnce>{job, tile, fetcher});
    }
    for (; tile < last; ++tile) for_row_tiles(job.n_rows, Columns<1>{job, tile, fetcher});
  }
};

template <class L, class E>
struct Accumulation {
  using Element = typename E::Element;

  // acc[d] += p_j V_jd for positions j of the range in order, kRows rows, kVectors vectors of
  // dimensions from d on; the last holds `last` of 16.
  template <size_t kRows, size_t kVectors>
  static void multiply(const BlockJob& job, size_t first_row, Span range, size_t d, size_t last,
                       Fetcher& fetcher) {
    const Element* const v = static_cast<const Element*>(job.v) + d;
    const float* p[kRows];
    float* acc[kRows];
    L sum[kRows][kVectors];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const size_t row = first_row + r;
      p[r] = job.scores + row * job.block;
      acc[r] = job.rows[row].partial + kPartialAcc + d;
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) sum[r][c] = L::load(acc[r] + 16 * c, 16);
    }
    for (size_t j = range.begin; j < range.end; ++j) {
      fetcher.fetch();
      const Element* const row = v + j * job.head_dim;
      L weight[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) weight[r] = L::splat(p[r][j]);
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) {
        const L value = E::load(row + 16 * c, c + 1 < kVectors ? 16 : last);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) sum[r][c] = L::fma(weight[r], value, sum[r][c]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t c = 0; c < kVectors; ++c) L::store(sum[r][c], acc[r] + 16 * c, 16);
    }
  }

  // Dimensions [d, d_end), as many vectors at a time as registers hold.
  template <size_t kRows>
  static void multiply_rows(const BlockJob& job, size_t row, Span range, size_t d, size_t d_end,
                            Fetcher& fetcher) {
    if (range.begin >= range.end) return;
    for_column_tiles<L::columns(kRows)>(d_end - d, Vectors<kRows>{job, row, range, d, fetcher});
  }
  template <size_t kRows>
  struct Vectors {
    const BlockJob& job;
    size_t row;
    Span range;
    size_t first;
    Fetcher& fetcher;
    template <size_t kVectors>
    [[gnu::always_inline]] void run(size_t d, size_t last) const {
      multiply<kRows, kVectors>(job, row, range, first + d, last, fetcher);
    }
  };

  // Rows see different positions at the ends of their ranges; what they share is done together.
  // Each still goes through its own in order, so it cannot tell.
  struct Dimensions {
    const BlockJob& job;
    size_t d;
    size_t d_end;
    Fetcher& fetcher;

    template <size_t kRows>
    [[gnu::always_inline]] void run(size_t first) const {
      Fetcher none;
      Span shared = {0, job.block};
      for (size_t r = first; r < first + kRows; ++r) {
        const BlockRow& row = job.rows[r];
        shared.begin = row.begin > shared.begin ? row.begin : shared.begin;
        shared.end = row.end < shared.end ? row.end : shared.end;
      }
      if (shared.begin >= shared.end) shared = {job.block, job.block};
      for (size_t r = first; r < first + kRows; ++r) {
        const BlockRow& row = job.rows[r];
        const size_t end = row.end < shared.begin ? row.end : shared.begin;
        multiply_rows<1>(job, r, {row.begin, end}, d, d_end, none);
      }
      multiply_rows<kRows>(job, first, shared, d, d_end, first == 0 ? fetcher : none);
      for (size_t r = first; r < first + kRows; ++r) {
        multiply_rows<1>(job, r, {shared.end, job.rows[r].end}, d, d_end, none);
      }
    }
  };

  static void run(const BlockJob& job) {
    for (size_t r = 0; r < job.n_rows; ++r) {
      float* const acc = job.rows[r].partial + kPartialAcc;
      for (size_t d = 0; d < job.head_dim; d += 16) L::store(L::zero(), acc + d, 16);
    }
    // A slice of dimensions of all positions fits the first-level cache and serves all rows; few
    // rows want a wider one, for more chains side by side.
    const size_t slice = job.n_rows <= 2 ? 128 : 64;
    const Span seen = seen_by_rows(job);
    const size_t width = 16 * L::columns(next_rows(job.n_rows));
    Fetcher fetcher(job.while_accumulating,
                    (seen.end - seen.begin) * ((job.head_dim + width - 1) / width));
    for (size_t d = 0; d < job.head_dim; d += slice) {
      const size_t d_end = d + slice < job.head_dim ? d + slice : job.head_dim;
      for_row_tiles(job.n_rows, Dimensions{job, d, d_end, fetcher});
    }
  }
};

template <class L>
struct Softmax {
  static constexpr float kNever = -__builtin_inff();

  // Scores of a tile that its row does not see as a whole.
  static void hide(const BlockRow& row, size_t tile, float* scores) {
    for (size_t j = tile; j < tile + kKvTile; ++j) {
      if (j < row.begin || j >= row.end) scores[j] = kNever;
    }
  }

  static void run_row(const BlockJob& job, const BlockRow& row, float* scores, Fetcher& fetcher) {
    const size_t begin = row.begin / kKvTile * kKvTile;
    const size_t end = (row.end + kKvTile - 1) / kKvTile * kKvTile;
    const L scale = L::splat(job.scale);
    L most = L::splat(kNever);
    for (size_t j = begin; j < end; j += kKvTile) {
      L s = L::mul(L::load(scores + j, 16), scale);
      if (job.softcap != 0.0f) s = softcap_lanes(s, L::splat(job.softcap));
      L::store(s, scores + j, 16);
      if (j < row.begin || j + kKvTile > row.end) {
        hide(row, j, scores);
        s = L::load(scores + j, 16);
      }
      most = L::max(most, s);
    }
    const float max = L::largest(most);
    // With every score minus infinity there is no mass: exp(-inf - 0) = 0 throughout.
    const L base = L::splat(max == kNever ? 0.0f : max);
    L sum = L::zero();
    for (size_t j = begin; j < end; j += kKvTile) {
      fetcher.fetch();
      const L p = exp_lanes(L::sub(L::load(scores + j, 16), base));
      sum = L::add(sum, p);
      L::store(p, scores + j, 16);
    }
    row.partial[0] = max;
    row.partial[1] = L::sum(sum);
  }

  static void run(const BlockJob& job) {
    const Span seen = seen_by_rows(job);
    Fetcher fetcher(job.while_normalizing, (seen.end - seen.begin) / kKvTile * job.n_rows);
    for (size_t r = 0; r < job.n_rows; ++r) {
      run_row(job, job.rows[r], job.scores + r * job.block, fetcher);
    }
  }
};

template <class L>
struct Merging {
  static void start(float* state, size_t head_dim) {
    state[0] = -__builtin_inff();
    state[1] = 0.0f;
    for (size_t d = 0; d < head_dim; d += 16) L::store(L::zero(), state + kPartialAcc + d, 16);
  }

  static float exp_one(float x) {
    float result = 0.0f;
    L::store(exp_lanes(L::splat(x)), &result, 1);
    return result;
  }

  // state = state * exp(m_state - m) + partial * exp(m_partial - m), m the larger of the two.
  static void merge(float* state, const float* partial, size_t head_dim) {
    const float old_max = state[0];
    const float block_max = partial[0];
    // A NaN among the scores may not show in the maximum, but does in the sum.
    if (block_max == -__builtin_inff() && partial[1] == 0.0f) return;
    const float max = old_max > block_max ? old_max : block_max;
    const float keep = exp_one(old_max - max);
    const float take = exp_one(block_max - max);
    const L k = L::splat(keep);
    const L t = L::splat(take);
    state[0] = max;
    state[1] = keep * state[1] + take * partial[1];
    for (size_t d = kPartialAcc; d < kPartialAcc + head_dim; d += 16) {
      const L added = L::mul(L::load(partial + d, 16), t);
      L::store(L::fma(L::load(state + d, 16), k, added), state + d, 16);
    }
  }

  // Zeros where nothing had any mass.
  static void finish(const float* state, float* out, size_t head_dim) {
    const L sum = L::splat(state[1] == 0.0f ? 1.0f : state[1]);
    for (size_t d = 0; d < head_dim; d += 16) {
      const size_t count = head_dim - d < 16 ? head_dim - d : 16;
      L::store(L::div(L::load(state + kPartialAcc + d, 16), sum), out + d, count);
    }
  }
};

template <class L>
struct AttentionBody {
  static constexpr AttentionKernels kTable = {
      .score = {Scores<L, F32Elements<L>>::run, Scores<L, F16Elements<L>>::run,
                Scores<L, Bf16Elements<L>>::run, QuantizedScores<L, Q8Codes<L>>::run,
                QuantizedScores<L, Q4Codes<L>>::run},
      .softmax = Softmax<L>::run,
      .accumulate = {Accumulation<L, F32Elements<L>>::run, Accumulation<L, F16Elements<L>>::run,
                     Accumulation<L, Bf16Elements<L>>::run,
                     QuantizedAccumulation<L, Q8Codes<L>>::run,
                     QuantizedAccumulation<L, Q4Codes<L>>::run},
      .start = Merging<L>::start,
      .merge = Merging<L>::merge,
      .finish = Merging<L>::finish};
};

}  // namespace
}  // namespace godwit::cpu
