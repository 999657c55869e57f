// Computes: what matvec_block256_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h and low_bit_tiles.h, [rows / 16, cols / 256];
//   x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. Everything within a block of 256 columns is an integer: group dots by
//   vpdpbusd, times the scale by vpmulld, minima and offsets of the codes by vpdpwssd on pairs. The
//   largest sums are those of Q6_K, 256 * 63 * 127 * 128, and IQ4_XS, 256 * 241 * 127 * 32: < 2^28.
// Reference: matvec_block256_generic.cpp.
// Tried and rejected: file layout, 87-90 % of the read bandwidth against 89-93 %
// (docs/NEGATIVE_RESULTS.md).

#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx512.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx512vnni {
namespace {

// sums -= dmin * dx * (minima times sums of x). mins[i] holds each row's two minima that belong to
// word i of Activations::sums, counted from word `first`.
template <size_t kWords, size_t kTokens>
[[gnu::always_inline]] inline void subtract_mins(__m512 dmin, const __m512i (&mins)[kWords],
                                                 size_t first, const Activations& x,
                                                 __m512 (&sums)[kTokens]) {
#pragma GCC unroll 16
  for (size_t t = 0; t < kTokens; ++t) {
    const int32_t* words = x.sums + t * x.sum_stride + first;
    __m512i imin = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (size_t i = 0; i < kWords; ++i) {
      imin = _mm512_dpwssd_epi32(imin, mins[i], _mm512_set1_epi32(words[i]));
    }
    const __m512 scale = _mm512_mul_ps(dmin, _mm512_set1_ps(x.scales[t * x.scale_stride]));
    sums[t] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(imin), scale, sums[t]);
  }
}

// The low or the high int16 of each dword, widened.
[[gnu::always_inline]] inline __m512i widen_low(__m512i pairs) {
  return _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
}
[[gnu::always_inline]] inline __m512i widen_high(__m512i pairs) {
  return _mm512_srai_epi32(pairs, 16);
}

// The 32 columns of one group: eight vectors of codes.
template <int kGroup, class Chunk>
[[gnu::always_inline]] inline void unpack_group(const Chunk& chunk, __m512i (&codes)[8]) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) codes[j] = nibbles<kGroup>(load(chunk.nibbles[j]));
  if constexpr (requires { chunk.high; }) {
    merge_high_bits(load(chunk.high[kGroup]), codes);
  }
}

// isums[t] += scale * dot of one group, for all tokens; q points at the group's columns.
template <size_t kTokens>
[[gnu::always_inline]] inline void add_group(const __m512i (&codes)[8], __m512i scales,
                                             const int8_t* q, size_t q_stride,
                                             __m512i (&isums)[kTokens]) {
#pragma GCC unroll 16
  for (size_t t = 0; t < kTokens; ++t) {
    const int8_t* x = q + t * q_stride;
    __m512i dot = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) dot = _mm512_dpbusd_epi32(dot, codes[j], broadcast4(x + 4 * j));
    isums[t] = _mm512_add_epi32(isums[t], _mm512_mullo_epi32(dot, scales));
  }
}

// Q4_K and Q5_K.
template <class Tile_>
struct Groups {
  using Tile = Tile_;

  template <int kGroup, size_t kTokens>
  [[gnu::always_inline]] static void add_group_of(const typename Tile::Chunk& chunk,
                                                  const Activations& x, size_t c,
                                                  __m512i (&isums)[kTokens]) {
    __m512i codes[8];
    unpack_group<kGroup>(chunk, codes);
    const __m512i scales = _mm512_cvtepu8_epi32(load128(chunk.scales[kGroup]));
    add_group(codes, scales, x.q + 64 * c + 32 * kGroup, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const typename Tile::Chunk& chunk,
                                               const Activations& x, size_t c,
                                               __m512i (&isums)[kTokens]) {
    add_group_of<0>(chunk, x, c, isums);
    add_group_of<1>(chunk, x, c, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d), isums, x, sums);
    __m512i mins[4];
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) {
      mins[c] = _mm512_cvtepu8_epi16(load256(tile.chunks[c].mins));
    }
    subtract_mins(load_halves(tile.dmin), mins, 0, x, sums);
  }
};

// IQ4_XS: values raised by kIq4Offset.
struct TableGroups {
  using Tile = TileIQ4_XS;

  template <int kGroup, size_t kTokens>
  [[gnu::always_inline]] static void add_group_of(const Tile::Chunk& chunk, __m512i scales,
                                                  const Activations& x, size_t c,
                                                  __m512i (&isums)[kTokens]) {
    __m512i codes[8];
    unpack_group<kGroup>(chunk, codes);
    const __m512i table = broadcast16(kIq4Raised.bytes);
#pragma GCC unroll 8
    for (__m512i& code : codes) code = _mm512_shuffle_epi8(table, code);
    add_group(codes, scales, x.q + 64 * c + 32 * kGroup, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, const Activations& x,
                                               size_t c, __m512i (&isums)[kTokens]) {
    const __m512i pairs = _mm512_cvtepi8_epi16(load256(chunk.scales));
    const __m512i lowered = _mm512_mullo_epi16(pairs, _mm512_set1_epi16(-kIq4Offset));
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512i word = _mm512_set1_epi32(x.sums[t * x.sum_stride + c]);
      isums[t] = _mm512_dpwssd_epi32(isums[t], lowered, word);
    }
    add_group_of<0>(chunk, widen_low(pairs), x, c, isums);
    add_group_of<1>(chunk, widen_high(pairs), x, c, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d), isums, x, sums);
  }
};

// The 16 columns of each half of pair kPair of a chunk.
template <size_t kPair>
[[gnu::always_inline]] inline void unpack_pair(const TileQ6_K::Chunk& chunk, __m512i (&half0)[4],
                                               __m512i (&half1)[4]) {
#pragma GCC unroll 2
  for (size_t k = 0; k < 2; ++k) {
    const __m512i high = load(chunk.high[k]);
    const __m512i even = load(chunk.low[2 * k]);
    const __m512i odd = load(chunk.low[2 * k + 1]);
    half0[2 * k] = _mm512_or_si512(nibbles<0>(even), field<0, 2, 4>(high));
    half0[2 * k + 1] = _mm512_or_si512(nibbles<0>(odd), field<2, 2, 4>(high));
    half1[2 * k] = _mm512_or_si512(nibbles<1>(even), field<4, 2, 4>(high));
    half1[2 * k + 1] = _mm512_or_si512(nibbles<1>(odd), field<6, 2, 4>(high));
  }
}
template <size_t kPair>
[[gnu::always_inline]] inline void unpack_pair(const TileQ2_K::Chunk& chunk, __m512i (&half0)[4],
                                               __m512i (&half1)[4]) {
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i codes = load(chunk.codes[j]);
    half0[j] = two_bits<kPair>(codes);
    half1[j] = two_bits<kPair + 2>(codes);
  }
}
// Columns 4 kJ.. of half kSide of a pair of Q3_K.
template <size_t kPair, int kSide, int kJ>
[[gnu::always_inline]] inline __m512i three_bits(const TileQ3_K::Chunk& chunk, __m512i high) {
  constexpr int kOrAnd = 0xf8;  // a | (b & c)
  const __m512i low = two_bits<kPair + 2 * kSide>(load(chunk.codes[kJ]));
  const __m512i bits = move_bit<kJ + 4 * kSide, 2>(high);
  return _mm512_ternarylogic_epi32(low, bits, _mm512_set1_epi8(4), kOrAnd);
}
template <size_t kPair>
[[gnu::always_inline]] inline void unpack_pair(const TileQ3_K::Chunk& chunk, __m512i (&half0)[4],
                                               __m512i (&half1)[4]) {
  const __m512i high = load(chunk.high[kPair]);
  half0[0] = three_bits<kPair, 0, 0>(chunk, high);
  half0[1] = three_bits<kPair, 0, 1>(chunk, high);
  half0[2] = three_bits<kPair, 0, 2>(chunk, high);
  half0[3] = three_bits<kPair, 0, 3>(chunk, high);
  half1[0] = three_bits<kPair, 1, 0>(chunk, high);
  half1[1] = three_bits<kPair, 1, 1>(chunk, high);
  half1[2] = three_bits<kPair, 1, 2>(chunk, high);
  half1[3] = three_bits<kPair, 1, 3>(chunk, high);
}

// The scales of one pair, [row][half of the columns] in int16.
template <size_t kPair>
[[gnu::always_inline]] inline __m512i pair_scales(const TileQ6_K::Chunk& chunk) {
  return _mm512_cvtepi8_epi16(load256(chunk.scales));
}
template <size_t kPair>
[[gnu::always_inline]] inline __m512i pair_scales(const TileQ2_K::Chunk& chunk) {
  const __m512i bytes = _mm512_cvtepu8_epi16(load256(chunk.scales[kPair]));
  return _mm512_and_si512(bytes, _mm512_set1_epi16(15));
}
template <size_t kPair>
[[gnu::always_inline]] inline __m512i pair_scales(const TileQ3_K::Chunk& chunk) {
  return _mm512_cvtepi8_epi16(load256(chunk.scales[kPair]));
}

// What to take off the codes.
template <class Tile>
constexpr int kOffset = 0;
template <>
constexpr int kOffset<TileQ6_K> = 32;
template <>
constexpr int kOffset<TileQ3_K> = 4;

// Q6_K, Q3_K and Q2_K: a scale for each 16 columns.
template <class Tile_>
struct Sixteens {
  using Tile = Tile_;
  using Chunk = typename Tile::Chunk;
  static constexpr size_t kPairs = 8 / (sizeof(Tile::chunks) / sizeof(Chunk));

  // isums += scale * (code - offset) * x over one pair. q points at half 0 of its columns, words at
  // the sums of x.
  template <size_t kPair, size_t kTokens>
  [[gnu::always_inline]] static void add_pair(const Chunk& chunk, const Activations& x,
                                              const int8_t* q, const int32_t* words,
                                              __m512i (&isums)[kTokens]) {
    __m512i half0[4];
    __m512i half1[4];
    unpack_pair<kPair>(chunk, half0, half1);
    const __m512i pairs = pair_scales<kPair>(chunk);
    const __m512i lowered =
        _mm512_mullo_epi16(pairs, _mm512_set1_epi16(static_cast<int16_t>(-kOffset<Tile>)));
    const __m512i scales0 = widen_low(pairs);
    const __m512i scales1 = widen_high(pairs);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* xt = q + t * x.q_stride;
      if constexpr (kOffset<Tile> != 0) {
        const __m512i word = _mm512_set1_epi32(words[t * x.sum_stride]);
        isums[t] = _mm512_dpwssd_epi32(isums[t], lowered, word);
      }
      isums[t] = _mm512_add_epi32(isums[t], _mm512_mullo_epi32(dot16(half0, xt), scales0));
      isums[t] = _mm512_add_epi32(isums[t], _mm512_mullo_epi32(dot16(half1, xt + 128), scales1));
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Chunk& chunk, const Activations& x, size_t c,
                                               __m512i (&isums)[kTokens]) {
    const int8_t* q = x.q + 16 * kPairs * c;
    const int32_t* words = x.sums + 4 + kPairs * c;
    add_pair<0>(chunk, x, q, words, isums);
    if constexpr (kPairs == 2) add_pair<1>(chunk, x, q + 16, words + 1, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d), isums, x, sums);
    if constexpr (requires { tile.dmin; }) {
      __m512i mins[8];
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        const __m512i bytes = _mm512_cvtepu8_epi16(load256(tile.chunks[i / 2].scales[i % 2]));
        mins[i] = _mm512_srli_epi16(bytes, 4);
      }
      subtract_mins(load_halves(tile.dmin), mins, 4, x, sums);
    }
  }
};

// TQ1_0 and TQ2_0: no scale but d.
struct TwoBits {
  using Tile = TileTQ2_0;

  template <size_t kPart, size_t kTokens>
  [[gnu::always_inline]] static void add_part(const Tile::Chunk& chunk, const int8_t* q,
                                              size_t q_stride, __m512i (&isums)[kTokens]) {
    __m512i codes[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) codes[j] = two_bits<kPart>(load(chunk.codes[j]));
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = _mm512_add_epi32(isums[t], dot16(codes, q + t * q_stride + 16 * kPart));
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, const Activations& x,
                                               size_t c, __m512i (&isums)[kTokens]) {
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      // Less the sums of x over this chunk's columns.
      const __m512i word = _mm512_set1_epi32(x.sums[t * x.sum_stride + c]);
      isums[t] = _mm512_dpwssd_epi32(isums[t], _mm512_set1_epi16(-1), word);
    }
    const int8_t* q = x.q + 64 * c;
    add_part<0>(chunk, q, x.q_stride, isums);
    add_part<1>(chunk, q, x.q_stride, isums);
    add_part<2>(chunk, q, x.q_stride, isums);
    add_part<3>(chunk, q, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, __m512 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d), isums, x, sums);
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<ChunkFrame<Kernel>, 8, 4, 2, 1>(args);
}

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run<Groups<TileQ4_K>>(args); }
void matvec_q5_k(const MatVecArgs& args) { run<Groups<TileQ5_K>>(args); }
void matvec_q6_k(const MatVecArgs& args) { run<Sixteens<TileQ6_K>>(args); }
void matvec_q2_k(const MatVecArgs& args) { run<Sixteens<TileQ2_K>>(args); }
void matvec_q3_k(const MatVecArgs& args) { run<Sixteens<TileQ3_K>>(args); }
void matvec_iq4_xs(const MatVecArgs& args) { run<TableGroups>(args); }
void matvec_tq2_0(const MatVecArgs& args) { run<TwoBits>(args); }

}  // namespace godwit::cpu::avx512vnni
