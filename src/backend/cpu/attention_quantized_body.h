// Scores and accumulation of attention_body.h over keys and values kept as Q8_0 or Q4_0, in
// integers. Unnamed namespace as in isa_rows.h.
//
// Computes: as attention_body.h says, with the query rounded to whole numbers at scale max|q| /
// 32639 of
//   its head, and exp(s_j - m) d_jb rounded likewise at scale max_j |d_jb| / 32639, for every block
//   b of 32 dimensions and every chunk of kChunk positions at absolute multiples of it.
// Shapes and types: tiles of attention_table.h; queries and scores f32.
// Preconditions: as attention_body.h; what tiles hold outside [begin, end) has no influence.
// Bytes moved: as attention_body.h; 34 or 18 bytes for 32 numbers.
// Work split: rows in register tiles of up to 4, against 1 or 2 tiles of 16 positions (scores) or
//   16 or 32 dimensions (accumulation).
// Arithmetic: exact. Dots of a block (32 dimensions, or a chunk of positions) are whole numbers
//   below 2^31, so any order gives them; each enters its f32 sum by one fma, in order of blocks or
//   of chunks. None of it depends on which rows are computed together.
// Synchronisation: none.
// Reference: GenericLanes; the error against double precision is bounded in attention_test.cpp.
// Tried and rejected: docs/NEGATIVE_RESULTS.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention_ahead.h"
#include "backend/cpu/attention_table.h"
#include "backend/cpu/row_tiles.h"

namespace godwit::cpu {
namespace {

constexpr size_t kQuantBlock = 32;
constexpr size_t kMostBlocks = kMaxHeadDim / kQuantBlock;
// The largest that two bytes with sign hold as 256 high + low.
constexpr float kMostWhole = 32639.0f;
// Positions that share the scale of their weights; twice as many products would still fit 32 bits.
constexpr size_t kChunk = 128;

template <class L>
[[gnu::always_inline]] inline L magnitude(L x) {
  return L::max(x, L::sub(L::zero(), x));
}
// 32639 / largest where that is a number. What is multiplied with it exceeds 32639 by roundings at
// most, or is no number; then so is the scale that the whole number gets.
[[gnu::always_inline]] inline float inverse_of(float largest) {
  constexpr float kSmallest = 0x1p-100f;
  return largest < kSmallest ? 0.0f : kMostWhole / largest;
}

// How keys and values of a format become codes of fours, and what stands for zero in them.
template <class L>
struct Q8Codes {
  using KeyTile = KeyTileQ8;
  using ValueTile = ValueTileQ8;
  using Codes = typename L::Codes;
  static constexpr int32_t kZero = 128;

  // Dimensions 8v to 8v + 7 of 16 positions.
  struct Keys {
    Codes fours[2];
  };
  [[gnu::always_inline]] static Keys keys(const KeyTile& tile, size_t v) {
    return {{L::load_codes(&tile.q[2 * v][0][0]), L::load_codes(&tile.q[2 * v + 1][0][0])}};
  }
  // Positions 4v to 4v + 3 of dimensions 16 * half on.
  [[gnu::always_inline]] static Codes values(const ValueTile& tile, size_t v, size_t half) {
    return L::load_codes(&tile.q[v][half][0][0]);
  }
};

template <class L>
struct Q4Codes {
  using KeyTile = KeyTileQ4;
  using ValueTile = ValueTileQ4;
  using Codes = typename L::Codes;
  static constexpr int32_t kZero = 8;

  struct Keys {
    Codes fours[2];
  };
  [[gnu::always_inline]] static Keys keys(const KeyTile& tile, size_t v) {
    const Codes both = L::load_codes(&tile.q[v][0][0]);
    return {{L::low_nibbles(both), L::high_nibbles(both)}};
  }
  [[gnu::always_inline]] static Codes values(const ValueTile& tile, size_t v, size_t half) {
    const Codes both = L::load_codes(&tile.q[v][0][0]);
    return half == 0 ? L::low_nibbles(both) : L::high_nibbles(both);
  }
};

// Where a dot begins for its codes' zero not to count. What is no number may have made the sum of
// the factors anything: then it wraps around, and the scale of the dot is no number either.
template <class F>
[[gnu::always_inline]] inline int32_t start_of(int32_t sum_of_factors) {
  return static_cast<int32_t>(static_cast<uint32_t>(-F::kZero) *
                              static_cast<uint32_t>(sum_of_factors));
}

// Bytes of n factors.
constexpr size_t factor_bytes(size_t n) { return 2 * n; }

// The queries of all rows of a job, rounded.
template <class L, class F>
struct RoundedQueries {
  alignas(64) uint8_t q[kMaxRows][factor_bytes(kMaxHeadDim)];
  int32_t start[kMaxRows][kMostBlocks];  // of a block's dot: what its codes' zero makes good
  float scale[kMaxRows];                 // NaN where the query holds a NaN or an infinity

  explicit RoundedQueries(const BlockJob& job) {
    for (size_t r = 0; r < job.n_rows; ++r) round(job.rows[r].q, job.head_dim, r);
  }

  void round(const float* from, size_t head_dim, size_t r) {
    L most = L::zero();
    L spoilt = L::zero();
    for (size_t d = 0; d < head_dim; d += 16) {
      const L x = L::load(from + d, 16);
      most = L::max(magnitude(x), most);
      spoilt = L::fma(x, L::zero(), spoilt);
    }
    const float largest = L::largest(most);
    const L inverse = L::splat(inverse_of(largest));
    scale[r] = largest / kMostWhole + L::sum(spoilt);
    for (size_t b = 0; b < head_dim / kQuantBlock; ++b) {
      typename L::Sums sums = L::no_sums();
      for (size_t d = b * kQuantBlock; d < (b + 1) * kQuantBlock; d += 16) {
        L::store_factors(L::mul(L::load(from + d, 16), inverse), q[r] + factor_bytes(d), sums);
      }
      start[r][b] = start_of<F>(L::all(sums));
    }
  }
};

template <class L, class F>
struct QuantizedScores {
  using Tile = typename F::KeyTile;
  using Queries = RoundedQueries<L, F>;
  using Products = typename L::Products;

  // kRows x kTiles x 16 scores, from K tile `tile` on.
  template <size_t kRows, size_t kTiles>
  static void multiply(const BlockJob& job, const Queries& queries, size_t first_row, size_t tile,
                       Fetcher& fetcher) {
    const size_t n_blocks = job.head_dim / kQuantBlock;
    const Tile* const tiles = static_cast<const Tile*>(job.k) + tile * n_blocks;
    float* const out = job.scores + first_row * job.block + tile * kKvTile;
    for (size_t b = 0; b < n_blocks; ++b) {
      Products sums[kRows][kTiles];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (size_t c = 0; c < kTiles; ++c)
          sums[r][c] = L::products_from(queries.start[first_row + r][b]);
      }
#pragma GCC unroll 4
      for (size_t v = 0; v < 4; ++v) {
        fetcher.fetch();
        typename F::Keys keys[kTiles];
#pragma GCC unroll 2
        for (size_t c = 0; c < kTiles; ++c) keys[c] = F::keys(tiles[c * n_blocks + b], v);
        const size_t sixteen = factor_bytes(b * kQuantBlock + v / 2 * 16);
#pragma GCC unroll 2
        for (size_t i = 0; i < 2; ++i) {
#pragma GCC unroll 4
          for (size_t r = 0; r < kRows; ++r) {
            const auto query = L::factors(queries.q[first_row + r] + sixteen, v % 2 * 2 + i);
#pragma GCC unroll 2
            for (size_t c = 0; c < kTiles; ++c)
              L::add_products(keys[c].fours[i], query, sums[r][c]);
          }
        }
      }
#pragma GCC unroll 2
      for (size_t c = 0; c < kTiles; ++c) {
        const L d = L::load_f16(tiles[c * n_blocks + b].d, 16);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          float* const score = out + r * job.block + c * kKvTile;
          const L before = b == 0 ? L::zero() : L::load(score, 16);
          L::store(L::fma(L::total(sums[r][c]), d, before), score, 16);
        }
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const L scale = L::splat(queries.scale[first_row + r]);
      for (size_t c = 0; c < kTiles; ++c) {
        float* const score = out + r * job.block + c * kKvTile;
        L::store(L::mul(L::load(score, 16), scale), score, 16);
      }
    }
  }

  template <size_t kTiles>
  struct Columns {
    const BlockJob& job;
    const Queries& queries;
    size_t tile;
    Fetcher& fetcher;
    template <size_t kRows>
    [[gnu::always_inline]] void run(size_t row) const {
      Fetcher none;
      multiply<kRows, kTiles>(job, queries, row, tile, row == 0 ? fetcher : none);
    }
  };

  template <size_t kAtOnce>
  static size_t run_columns(const BlockJob& job, const Queries& queries, Span tiles,
                            Fetcher& fetcher) {
    size_t tile = tiles.begin;
    for (; tile + kAtOnce <= tiles.end; tile += kAtOnce) {
      for_row_tiles(job.n_rows, Columns<kAtOnce>{job, queries, tile, fetcher});
    }
    return tile;
  }

  static void run(const BlockJob& job) {
    const Queries queries(job);
    const Span seen = seen_by_rows(job);
    Span tiles = {seen.begin / kKvTile, (seen.end + kKvTile - 1) / kKvTile};
    constexpr size_t kAtOnce = L::kSumColumns;
    const size_t n_steps =
        (tiles.end - tiles.begin + kAtOnce - 1) / kAtOnce * 4 * (job.head_dim / kQuantBlock);
    Fetcher fetcher(job.while_scoring, n_steps);
    tiles.begin = run_columns<kAtOnce>(job, queries, tiles, fetcher);
    run_columns<1>(job, queries, tiles, fetcher);
  }
};

// What a row of a chunk is multiplied by.
struct ChunkRow {
  alignas(64) uint8_t weights[factor_bytes(kChunk)];
  int32_t start;  // of a dot: what the codes' zero makes good
  float scale;
};

template <class L, class F>
struct QuantizedAccumulation {
  using Tile = typename F::ValueTile;
  using Products = typename L::Products;

  // A chunk of positions and a block of 32 dimensions, all rows.
  struct Part {
    const BlockJob& job;
    size_t first;  // position of the chunk in its block
    size_t n;      // its positions
    size_t b;
    Fetcher& fetcher;

    // The positions of the chunk that a row sees.
    [[nodiscard]] Span seen(const BlockRow& row) const {
      const size_t begin = row.begin > first ? row.begin - first : 0;
      const size_t end = row.end < first + n ? row.end : first + n;
      return end <= first + begin ? Span{0, 0} : Span{begin, end - first};
    }
    [[nodiscard]] const Tile* tiles() const {
      return static_cast<const Tile*>(job.v) + first / kKvTile * (job.head_dim / kQuantBlock) + b;
    }

    template <size_t kRows>
    [[gnu::always_inline]] void run(size_t row) const {
      Fetcher none;
      multiply_rows<kRows>(*this, row, row == 0 ? fetcher : none);
    }
  };

  // What weighs exp(s_j - m) at the positions of one range: d_j * 32639 / max |d|, and 0 where the
  // range ends.
  struct Scales {
    alignas(64) float by[kChunk];
    Span seen;
    float step = 0;  // of the weights; NaN where one of the scales is no number

    Scales(const Part& part, Span range) : seen(range) {
      const size_t n_blocks = part.job.head_dim / kQuantBlock;
      const size_t begin = range.begin / kKvTile * kKvTile;
      const size_t end = (range.end + kKvTile - 1) / kKvTile * kKvTile;
      for (size_t j = begin; j < end; j += kKvTile) {
        L::store(L::load_f16(part.tiles()[j / kKvTile * n_blocks].d, 16), by + j, 16);
      }
      for (size_t j = begin; j < range.begin; ++j) by[j] = 0.0f;
      for (size_t j = range.end; j < end; ++j) by[j] = 0.0f;
      L most = L::zero();
      L spoilt = L::zero();
      for (size_t j = begin; j < end; j += kKvTile) {
        const L d = L::load(by + j, 16);
        most = L::max(magnitude(d), most);
        spoilt = L::fma(d, L::zero(), spoilt);
      }
      const float largest = L::largest(most);
      const L inverse = L::splat(inverse_of(largest));
      for (size_t j = begin; j < end; j += kKvTile) {
        L::store(L::mul(L::load(by + j, 16), inverse), by + j, 16);
      }
      step = largest / kMostWhole + L::sum(spoilt);
    }
  };

  static void weigh(const Part& part, const Scales& scales, size_t row, ChunkRow& out) {
    const float* const p = part.job.scores + row * part.job.block + part.first;
    const size_t begin = scales.seen.begin / kKvTile * kKvTile;
    const size_t end = (scales.seen.end + kKvTile - 1) / kKvTile * kKvTile;
    typename L::Sums sums = L::no_sums();
    for (size_t j = 0; j < part.n; j += kKvTile) {
      const bool seen = j >= begin && j < end;
      const L weight = seen ? L::mul(L::load(p + j, 16), L::load(scales.by + j, 16)) : L::zero();
      L::store_factors(weight, out.weights + factor_bytes(j), sums);
    }
    out.start = start_of<F>(L::all(sums));
    out.scale = scales.step;
  }

  // Dimensions 16 * kHalf on, kHalves times 16 of them.
  template <size_t kHalf, size_t kHalves, size_t kRows>
  static void multiply(const Part& part, Span tiles, const ChunkRow (&rows)[kRows],
                       size_t first_row, Fetcher& fetcher) {
    const size_t n_blocks = part.job.head_dim / kQuantBlock;
    const Tile* const all = part.tiles();
    Products sums[kRows][kHalves];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) sums[r][h] = L::products_from(rows[r].start);
    }
    for (size_t t = tiles.begin; t < tiles.end; ++t) {
      const Tile& tile = all[t * n_blocks];
      fetcher.fetch();
#pragma GCC unroll 4
      for (size_t v = 0; v < 4; ++v) {
        typename L::Codes values[kHalves];
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) values[h] = F::values(tile, v, kHalf + h);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          const auto weight = L::factors(rows[r].weights + factor_bytes(t * kKvTile), v);
#pragma GCC unroll 2
          for (size_t h = 0; h < kHalves; ++h) L::add_products(values[h], weight, sums[r][h]);
        }
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      float* const acc =
          part.job.rows[first_row + r].partial + kPartialAcc + part.b * kQuantBlock + 16 * kHalf;
      const L scale = L::splat(rows[r].scale);
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        const L before = L::load(acc + 16 * h, 16);
        L::store(L::fma(L::total(sums[r][h]), scale, before), acc + 16 * h, 16);
      }
    }
  }

  // Rows that see nothing of the chunk weigh nothing in it: zero is added to what they have.
  template <size_t kRows>
  static void multiply_rows(const Part& part, size_t first_row, Fetcher& fetcher) {
    ChunkRow rows[kRows];
    Span all = part.seen(part.job.rows[first_row]);
    Scales scales(part, all);
    for (size_t r = 0; r < kRows; ++r) {
      const Span seen = part.seen(part.job.rows[first_row + r]);
      if (seen.begin != scales.seen.begin || seen.end != scales.seen.end)
        scales = Scales(part, seen);
      weigh(part, scales, first_row + r, rows[r]);
      if (seen.begin == seen.end) continue;
      const bool none = all.begin == all.end;
      all = {none || seen.begin < all.begin ? seen.begin : all.begin,
             seen.end > all.end ? seen.end : all.end};
    }
    if (all.begin == all.end) return;
    const Span tiles = {all.begin / kKvTile, (all.end + kKvTile - 1) / kKvTile};
    if constexpr (L::kSumColumns >= 2) {
      multiply<0, 2>(part, tiles, rows, first_row, fetcher);
    } else {
      multiply<0, 1>(part, tiles, rows, first_row, fetcher);
      multiply<1, 1>(part, tiles, rows, first_row, fetcher);
    }
  }

  static void run(const BlockJob& job) {
    for (size_t r = 0; r < job.n_rows; ++r) {
      float* const acc = job.rows[r].partial + kPartialAcc;
      for (size_t d = 0; d < job.head_dim; d += 16) L::store(L::zero(), acc + d, 16);
    }
    const Span seen = seen_by_rows(job);
    const size_t n_blocks = job.head_dim / kQuantBlock;
    const size_t halves = L::kSumColumns >= 2 ? 1 : 2;
    Fetcher fetcher(job.while_accumulating,
                    (seen.end - seen.begin + kKvTile - 1) / kKvTile * n_blocks * halves);
    const size_t n = job.block < kChunk ? job.block : kChunk;
    for (size_t first = seen.begin / n * n; first < seen.end; first += n) {
      for (size_t b = 0; b < n_blocks; ++b) {
        for_row_tiles(job.n_rows, Part{job, first, n, b, fetcher});
      }
    }
  }
};

}  // namespace
}  // namespace godwit::cpu
