// Scores and accumulation of attention_body.h over keys and values kept as Q8_0 or Q4_0, in
// integers. Unnamed namespace as in isa_rows.h.
//
// Computes: as attention_body.h says, with the query rounded to 16 bits at scale max|q| / 32767 of
//   its head, and exp(s_j - m) d_jb rounded to 16 bits at scale max_j d_jb / 32767, for every block
//   b of 32 dimensions and every chunk of kChunk positions at absolute multiples of it.
// Shapes and types: tiles of attention_table.h; queries and scores f32.
// Preconditions: as attention_body.h; what tiles hold outside [begin, end) has no influence.
// Bytes moved: as attention_body.h; 34 or 18 bytes for 32 numbers.
// Work split: rows in register tiles of up to 4, against 1 to 4 tiles of 16 positions (scores) or
//   16 or 32 dimensions (accumulation).
// Arithmetic: exact. Dots of a block (32 dimensions, or a chunk of positions) are whole numbers
//   below 2^30, so any order gives them; each enters its f32 sum by one fma, in order of blocks or
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
constexpr float kMostWhole = 32767.0f;
// Positions that share the scale of their weights: 512 of the largest products still fit 32 bits.
constexpr size_t kChunk = 128;

// x scaled and cut to what 16 bits hold; a NaN becomes the largest.
template <class L>
[[gnu::always_inline]] inline L scaled_whole(L x, L inverse) {
  return L::max(L::min(L::mul(x, inverse), L::splat(kMostWhole)), L::splat(-kMostWhole));
}
template <class L>
[[gnu::always_inline]] inline L magnitude(L x) {
  return L::max(x, L::sub(L::zero(), x));
}
// 32767 / largest where that is a number.
[[gnu::always_inline]] inline float inverse_of(float largest) {
  constexpr float kSmallest = 0x1p-100f;
  return largest < kSmallest ? 0.0f : kMostWhole / largest;
}

// How keys and values of a format become pairs of words, and what stands for zero in them.
template <class L>
struct Q8Codes {
  using KeyTile = KeyTileQ8;
  using ValueTile = ValueTileQ8;
  using Pairs = typename L::Pairs;
  static constexpr int32_t kZero = 0;
  static constexpr size_t kKeyPairs = 4;  // of dimensions that a Keys holds

  // Dimensions 8v to 8v + 7 of 16 positions, pair by pair.
  struct Keys {
    const int8_t* p;
    template <size_t kPair>
    [[gnu::always_inline]] Pairs pair() const {
      return Pairs::load_bytes(p + kPair * 2 * kKvTile);
    }
  };
  [[gnu::always_inline]] static Keys keys(const KeyTile& tile, size_t v) {
    return {&tile.q[4 * v][0][0]};
  }
  // Positions 4v to 4v + 3 of 32 dimensions.
  struct Values {
    const int8_t* p;
    template <size_t kPair, size_t kHalf>
    [[gnu::always_inline]] Pairs pair() const {
      return Pairs::load_bytes(p + (2 * kPair + kHalf) * 32);
    }
  };
  [[gnu::always_inline]] static Values values(const ValueTile& tile, size_t v) {
    return {&tile.q[2 * v][0][0][0]};
  }
};

template <class L>
struct Q4Codes {
  using KeyTile = KeyTileQ4;
  using ValueTile = ValueTileQ4;
  using Pairs = typename L::Pairs;
  static constexpr int32_t kZero = 8;

  struct Keys {
    Pairs nibbles;
    template <size_t kPair>
    [[gnu::always_inline]] Pairs pair() const {
      return Pairs::template nibbles<4 * kPair>(nibbles);
    }
  };
  [[gnu::always_inline]] static Keys keys(const KeyTile& tile, size_t v) {
    return {Pairs::load(&tile.q[v][0][0])};
  }
  struct Values {
    Pairs nibbles;
    template <size_t kPair, size_t kHalf>
    [[gnu::always_inline]] Pairs pair() const {
      return Pairs::template nibbles<8 * kPair + 4 * kHalf>(nibbles);
    }
  };
  [[gnu::always_inline]] static Values values(const ValueTile& tile, size_t v) {
    return {Pairs::load(&tile.q[v][0][0])};
  }
};

[[gnu::always_inline]] inline int32_t sum_of(const int16_t* x, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// The queries of all rows of a job, rounded.
template <class L, class F>
struct RoundedQueries {
  alignas(64) int16_t q[kMaxRows][kMaxHeadDim];
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
    for (size_t d = 0; d < head_dim; d += 16) {
      L::store_whole(scaled_whole(L::load(from + d, 16), inverse), q[r] + d);
    }
    for (size_t b = 0; b < head_dim / kQuantBlock; ++b) {
      start[r][b] = F::kZero == 0 ? 0 : -F::kZero * sum_of(q[r] + b * kQuantBlock, kQuantBlock);
    }
  }
};

template <class L, class F>
struct QuantizedScores {
  using Pairs = typename L::Pairs;
  using Tile = typename F::KeyTile;
  using Queries = RoundedQueries<L, F>;

  template <size_t kPair, size_t kRows, size_t kTiles>
  [[gnu::always_inline]] static void multiply_pair(const typename F::Keys (&keys)[kTiles],
                                                   const int16_t* const (&q)[kRows],
                                                   Pairs (&sum)[kRows][kTiles]) {
    Pairs key[kTiles];
#pragma GCC unroll 4
    for (size_t c = 0; c < kTiles; ++c) key[c] = keys[c].template pair<kPair>();
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const Pairs query = Pairs::splat_pair(q[r] + 2 * kPair);
#pragma GCC unroll 4
      for (size_t c = 0; c < kTiles; ++c) sum[r][c] = Pairs::dot(sum[r][c], key[c], query);
    }
  }

  // kRows x kTiles x 16 scores, from K tile `tile` on.
  template <size_t kRows, size_t kTiles>
  static void multiply(const BlockJob& job, const Queries& queries, size_t first_row, size_t tile,
                       Fetcher& fetcher) {
    const size_t n_blocks = job.head_dim / kQuantBlock;
    const Tile* const tiles = static_cast<const Tile*>(job.k) + tile * n_blocks;
    float* const out = job.scores + first_row * job.block + tile * kKvTile;
    for (size_t b = 0; b < n_blocks; ++b) {
      Pairs sum[kRows][kTiles];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t c = 0; c < kTiles; ++c)
          sum[r][c] = Pairs::splat(queries.start[first_row + r][b]);
      }
#pragma GCC unroll 1
      for (size_t v = 0; v < 4; ++v) {
        fetcher.fetch();
        typename F::Keys keys[kTiles];
        const int16_t* q[kRows];
#pragma GCC unroll 4
        for (size_t c = 0; c < kTiles; ++c) keys[c] = F::keys(tiles[c * n_blocks + b], v);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r)
          q[r] = queries.q[first_row + r] + b * kQuantBlock + 8 * v;
        multiply_pair<0>(keys, q, sum);
        multiply_pair<1>(keys, q, sum);
        multiply_pair<2>(keys, q, sum);
        multiply_pair<3>(keys, q, sum);
      }
#pragma GCC unroll 4
      for (size_t c = 0; c < kTiles; ++c) {
        const L d = L::load_f16(tiles[c * n_blocks + b].d, 16);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          float* const score = out + r * job.block + c * kKvTile;
          const L before = b == 0 ? L::zero() : L::load(score, 16);
          L::store(L::fma(L::from_sums(sum[r][c]), d, before), score, 16);
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
    constexpr size_t kAtOnce = L::kSumTiles;
    const size_t n_steps =
        (tiles.end - tiles.begin + kAtOnce - 1) / kAtOnce * 4 * (job.head_dim / kQuantBlock);
    Fetcher fetcher(job.while_scoring, n_steps);
    tiles.begin = run_columns<kAtOnce>(job, queries, tiles, fetcher);
    run_columns<1>(job, queries, tiles, fetcher);
  }
};

// What a row of a chunk is multiplied by.
struct ChunkRow {
  alignas(64) int16_t weights[kChunk];
  int32_t start;  // of a dot: what the codes' zero makes good
  float scale;
};

template <class L, class F>
struct QuantizedAccumulation {
  using Pairs = typename L::Pairs;
  using Tile = typename F::ValueTile;

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

  // The scales of the block at the positions of one range, 0 where it ends.
  struct Scales {
    alignas(64) float d[kChunk];
    Span seen;
    float largest = 0;
    float spoilt = 0;  // NaN where one of them is no number

    Scales(const Part& part, Span range) : seen(range) {
      const size_t n_blocks = part.job.head_dim / kQuantBlock;
      const size_t begin = range.begin / kKvTile;
      const size_t end = (range.end + kKvTile - 1) / kKvTile;
      for (size_t t = begin; t < end; ++t) {
        L::store(L::load_f16(part.tiles()[t * n_blocks].d, 16), d + t * kKvTile, 16);
      }
      for (size_t j = begin * kKvTile; j < range.begin; ++j) d[j] = 0.0f;
      for (size_t j = range.end; j < end * kKvTile; ++j) d[j] = 0.0f;
      L most = L::zero();
      L spoils = L::zero();
      for (size_t t = begin; t < end; ++t) {
        const L x = L::load(d + t * kKvTile, 16);
        most = L::max(magnitude(x), most);
        spoils = L::fma(x, L::zero(), spoils);
      }
      largest = L::largest(most);
      spoilt = L::sum(spoils);
    }
  };

  static void weigh(const Part& part, const Scales& scales, size_t row, ChunkRow& out) {
    const float* const p = part.job.scores + row * part.job.block + part.first;
    const size_t begin = scales.seen.begin / kKvTile;
    const size_t end = (scales.seen.end + kKvTile - 1) / kKvTile;
    const L inverse = L::splat(inverse_of(scales.largest));
    for (size_t t = 0; t < part.n / kKvTile; ++t) {
      L weight = L::zero();
      if (t >= begin && t < end) {
        const L share = L::mul(L::load(p + t * kKvTile, 16), L::load(scales.d + t * kKvTile, 16));
        weight = scaled_whole(share, inverse);
      }
      L::store_whole(weight, out.weights + t * kKvTile);
    }
    out.start = F::kZero == 0 ? 0 : -F::kZero * sum_of(out.weights, part.n);
    out.scale = scales.largest / kMostWhole + scales.spoilt;
  }

  template <size_t kPair, size_t kHalf, size_t kRows, size_t kHalves>
  [[gnu::always_inline]] static void multiply_pair(const typename F::Values& values,
                                                   const int16_t* const (&weights)[kRows],
                                                   Pairs (&sum)[kRows][kHalves]) {
    Pairs value[kHalves];
    value[0] = values.template pair<kPair, kHalf>();
    if constexpr (kHalves == 2) value[1] = values.template pair<kPair, 1>();
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const Pairs weight = Pairs::splat_pair(weights[r] + 2 * kPair);
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) sum[r][h] = Pairs::dot(sum[r][h], value[h], weight);
    }
  }

  // Dimensions 16 * kHalf on, kHalves times 16 of them.
  template <size_t kHalf, size_t kHalves, size_t kRows>
  static void multiply(const Part& part, Span tiles, const ChunkRow (&rows)[kRows],
                       size_t first_row, Fetcher& fetcher) {
    const size_t n_blocks = part.job.head_dim / kQuantBlock;
    const Tile* const all = part.tiles();
    Pairs sum[kRows][kHalves];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) sum[r][h] = Pairs::splat(rows[r].start);
    }
    for (size_t t = tiles.begin; t < tiles.end; ++t) {
      const Tile& tile = all[t * n_blocks];
      fetcher.fetch();
#pragma GCC unroll 4
      for (size_t v = 0; v < 4; ++v) {
        const typename F::Values values = F::values(tile, v);
        const int16_t* weights[kRows];
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) weights[r] = rows[r].weights + t * kKvTile + 4 * v;
        multiply_pair<0, kHalf>(values, weights, sum);
        multiply_pair<1, kHalf>(values, weights, sum);
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
        L::store(L::fma(L::from_sums(sum[r][h]), scale, before), acc + 16 * h, 16);
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
    if constexpr (L::kSumTiles >= 2) {
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
    const size_t halves = L::kSumTiles >= 2 ? 1 : 2;
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
