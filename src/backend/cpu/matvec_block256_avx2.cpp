// Computes: what matvec_block256_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h and low_bit_tiles.h, [rows / 16, cols / 256];
//   x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); up to 4 tokens at a time.
// Arithmetic: exact. vpmaddubsw sums fit int16: eight of 15 * 127 * 2, four of 31 * 127 * 2, two of
//   63 * 127 * 2, sixteen of 3 * 127 * 2, four of 7 * 127 * 2, one of 127 * 127 * 2; vpmaddwd
//   multiplies them by the group's scale and adds pairs in int32. There the largest sum is that of
//   Q6_K, 256 * 63 * 127 * 128 < 2^28.
// Reference: matvec_block256_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx2.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/nibble_tables.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx2 {
namespace {

// sums -= dmin * dx * (minima times sums of x). mins[i] holds each row's two minima that belong to
// word i of Activations::sums, counted from word `first`.
template <size_t kWords, size_t kTokens>
[[gnu::always_inline]] inline void subtract_mins(__m256 dmin, const __m256i (&mins)[kWords],
                                                 size_t first, const Activations& x,
                                                 __m256 (&sums)[kTokens]) {
#pragma GCC unroll 8
  for (size_t t = 0; t < kTokens; ++t) {
    const int32_t* words = x.sums + t * x.sum_stride + first;
    __m256i imin = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (size_t i = 0; i < kWords; ++i) {
      const __m256i pairs = _mm256_set1_epi32(words[i]);
      imin = _mm256_add_epi32(imin, _mm256_madd_epi16(mins[i], pairs));
    }
    const __m256 scale = _mm256_mul_ps(dmin, _mm256_set1_ps(x.scales[t * x.scale_stride]));
    sums[t] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(imin), scale, sums[t]);
  }
}

// The low or the high int16 of each dword, in both.
[[gnu::always_inline]] inline __m256i both_low(__m256i pairs) {
  return _mm256_or_si256(_mm256_and_si256(pairs, _mm256_set1_epi32(0xffff)),
                         _mm256_slli_epi32(pairs, 16));
}
[[gnu::always_inline]] inline __m256i both_high(__m256i pairs) {
  const __m256i high = _mm256_srli_epi32(pairs, 16);
  return _mm256_or_si256(high, _mm256_slli_epi32(high, 16));
}

// isums[t] += scale * dot of one group of 32 columns, four columns after four columns, each vector
// of codes made just before its use: sixteen registers hold no more. q points at the group.
template <size_t kGroup, size_t kTokens, class Chunk>
[[gnu::always_inline]] inline void add_group(const Chunk& chunk, size_t half, const int8_t* q,
                                             size_t q_stride, __m256i (&isums)[kTokens]) {
  constexpr bool kFiveBits = requires { chunk.high; };
  constexpr size_t kRun = kFiveBits ? 4 : 8;  // vectors whose pairs are added in int16
  // Each row's scale in both its int16.
  const __m256i single = _mm256_cvtepu8_epi32(load64(chunk.scales[kGroup] + 8 * half));
  const __m256i scales = _mm256_or_si256(single, _mm256_slli_epi32(single, 16));
  __m256i pairs[kTokens];
#pragma GCC unroll 8
  for (size_t j = 0; j < 8; ++j) {
    __m256i codes = nibbles<kGroup>(load(chunk.nibbles[j], half));
    if constexpr (kFiveBits) codes = merge_bit4(codes, high_bit(load(chunk.high[kGroup], half), j));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i products = _mm256_maddubs_epi16(codes, broadcast4(q + t * q_stride + 4 * j));
      pairs[t] = j % kRun == 0 ? products : _mm256_add_epi16(pairs[t], products);
      if (j % kRun == kRun - 1) {
        isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(pairs[t], scales));
      }
    }
  }
}

// Q4_K and Q5_K.
template <class Tile_>
struct Groups {
  using Tile = Tile_;

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const typename Tile::Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    const int8_t* q = x.q + 64 * c;
    add_group<0>(chunk, half, q, x.q_stride, isums);
    add_group<1>(chunk, half, q + 32, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d, half), isums, x, sums);
    __m256i mins[4];
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) {
      mins[c] = _mm256_cvtepu8_epi16(load128(tile.chunks[c].mins[8 * half]));
    }
    subtract_mins(load_halves(tile.dmin, half), mins, 0, x, sums);
  }
};

// Columns 4 j.. of one half of the rows, of pair kPair and column half kSide of a chunk.
template <size_t kPair, size_t kSide>
[[gnu::always_inline]] inline __m256i side_codes(const TileQ6_K::Chunk& chunk, size_t half,
                                                 size_t j) {
  // The two bits of (j, side) lie at bit 2 (j mod 2) + 4 side and go to bit 4.
  const __m256i high = high_bit(load(chunk.high[j / 2], half), 2 * (j % 2) + 4 * kSide);
  return _mm256_or_si256(nibbles<kSide>(load(chunk.low[j], half)),
                         _mm256_and_si256(high, _mm256_set1_epi8(48)));
}
template <size_t kPair, size_t kSide>
[[gnu::always_inline]] inline __m256i side_codes(const TileQ2_K::Chunk& chunk, size_t half,
                                                 size_t j) {
  return two_bits<kPair + 2 * kSide>(load(chunk.codes[j], half));
}
template <size_t kPair, size_t kSide>
[[gnu::always_inline]] inline __m256i side_codes(const TileQ3_K::Chunk& chunk, size_t half,
                                                 size_t j) {
  const __m256i high = move_bit<2>(load(chunk.high[kPair], half), j + 4 * kSide);
  return _mm256_or_si256(two_bits<kPair + 2 * kSide>(load(chunk.codes[j], half)),
                         _mm256_and_si256(high, _mm256_set1_epi8(4)));
}

// The scales of one pair, [row][side] in int16.
template <size_t kPair>
[[gnu::always_inline]] inline __m256i pair_scales(const TileQ6_K::Chunk& chunk, size_t half) {
  return _mm256_cvtepi8_epi16(load128(chunk.scales[8 * half]));
}
template <size_t kPair>
[[gnu::always_inline]] inline __m256i pair_scales(const TileQ2_K::Chunk& chunk, size_t half) {
  const __m256i bytes = _mm256_cvtepu8_epi16(load128(chunk.scales[kPair][8 * half]));
  return _mm256_and_si256(bytes, _mm256_set1_epi16(15));
}
template <size_t kPair>
[[gnu::always_inline]] inline __m256i pair_scales(const TileQ3_K::Chunk& chunk, size_t half) {
  return _mm256_cvtepi8_epi16(load128(chunk.scales[kPair][8 * half]));
}

// The binary logarithm of what to take off the codes; 0 where nothing.
template <class Tile>
constexpr int kOffsetBits = 0;
template <>
constexpr int kOffsetBits<TileQ6_K> = 5;
template <>
constexpr int kOffsetBits<TileQ3_K> = 2;

// Vectors of codes whose pairs are added in int16.
template <class Tile>
constexpr size_t kRunOf = 4;
template <>
constexpr size_t kRunOf<TileQ6_K> = 2;

// Q6_K, Q3_K and Q2_K: a scale for each 16 columns.
template <class Tile_>
struct Sixteens {
  using Tile = Tile_;
  using Chunk = typename Tile::Chunk;
  static constexpr size_t kPairs = 8 / (sizeof(Tile::chunks) / sizeof(Chunk));
  static constexpr size_t kRun = kRunOf<Tile>;

  // isums[t] += scale * code * x over 16 columns; q points at them.
  template <size_t kPair, size_t kSide, size_t kTokens>
  [[gnu::always_inline]] static void add_side(const Chunk& chunk, size_t half, __m256i scales,
                                              const int8_t* q, size_t q_stride,
                                              __m256i (&isums)[kTokens]) {
#pragma GCC unroll 4
    for (size_t first = 0; first < 4; first += kRun) {
      __m256i codes[kRun];
#pragma GCC unroll 4
      for (size_t j = 0; j < kRun; ++j) {
        codes[j] = side_codes<kPair, kSide>(chunk, half, first + j);
      }
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const int8_t* x = q + t * q_stride + 4 * first;
        __m256i pairs = _mm256_maddubs_epi16(codes[0], broadcast4(x));
#pragma GCC unroll 4
        for (size_t j = 1; j < kRun; ++j) {
          pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes[j], broadcast4(x + 4 * j)));
        }
        isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(pairs, scales));
      }
    }
  }

  // isums += scale * (code - offset) * x over one pair. q points at half 0 of its columns, words at
  // the sums of x.
  template <size_t kPair, size_t kTokens>
  [[gnu::always_inline]] static void add_pair(const Chunk& chunk, size_t half, const Activations& x,
                                              const int8_t* q, const int32_t* words,
                                              __m256i (&isums)[kTokens]) {
    const __m256i scales = pair_scales<kPair>(chunk, half);
    if constexpr (kOffsetBits<Tile> != 0) {
      const __m256i offsets = _mm256_slli_epi16(scales, kOffsetBits<Tile>);  // fit int16
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i word = _mm256_set1_epi32(words[t * x.sum_stride]);
        isums[t] = _mm256_sub_epi32(isums[t], _mm256_madd_epi16(offsets, word));
      }
    }
    add_side<kPair, 0>(chunk, half, both_low(scales), q, x.q_stride, isums);
    add_side<kPair, 1>(chunk, half, both_high(scales), q + 128, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    const int8_t* q = x.q + 16 * kPairs * c;
    const int32_t* words = x.sums + 4 + kPairs * c;
    add_pair<0>(chunk, half, x, q, words, isums);
    if constexpr (kPairs == 2) add_pair<1>(chunk, half, x, q + 16, words + 1, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d, half), isums, x, sums);
    if constexpr (requires { tile.dmin; }) {
      __m256i mins[8];
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        const uint8_t* bytes = tile.chunks[i / 2].scales[i % 2][8 * half];
        mins[i] = _mm256_srli_epi16(_mm256_cvtepu8_epi16(load128(bytes)), 4);
      }
      subtract_mins(load_halves(tile.dmin, half), mins, 4, x, sums);
    }
  }
};

// IQ4_XS: |value| times x with the value's sign.
struct TableGroups {
  using Tile = TileIQ4_XS;

  template <size_t kGroup, size_t kTokens>
  [[gnu::always_inline]] static void add_columns(const Tile::Chunk& chunk, size_t half,
                                                 __m256i scales, const int8_t* q, size_t q_stride,
                                                 __m256i (&isums)[kTokens]) {
    const __m256i table = broadcast16(kIq4Signed.bytes);
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const __m256i values =
          _mm256_shuffle_epi8(table, nibbles<kGroup>(load(chunk.nibbles[j], half)));
      const __m256i magnitudes = _mm256_abs_epi8(values);
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i x = _mm256_sign_epi8(broadcast4(q + t * q_stride + 4 * j), values);
        const __m256i pairs = _mm256_maddubs_epi16(magnitudes, x);
        isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(pairs, scales));
      }
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    const __m256i scales = _mm256_cvtepi8_epi16(load128(chunk.scales[8 * half]));
    const int8_t* q = x.q + 64 * c;
    add_columns<0>(chunk, half, both_low(scales), q, x.q_stride, isums);
    add_columns<1>(chunk, half, both_high(scales), q + 32, x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d, half), isums, x, sums);
  }
};

// TQ1_0 and TQ2_0: no scale but d.
struct TwoBits {
  using Tile = TileTQ2_0;

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    __m256i pairs[kTokens];
    for (__m256i& pair : pairs) pair = _mm256_setzero_si256();
    const int8_t* q = x.q + 64 * c;
    add_two_bits<0>(chunk.codes, half, q, x.q_stride, pairs);
    add_two_bits<1>(chunk.codes, half, q, x.q_stride, pairs);
    add_two_bits<2>(chunk.codes, half, q, x.q_stride, pairs);
    add_two_bits<3>(chunk.codes, half, q, x.q_stride, pairs);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      // Less the sums of x over this chunk's columns.
      const __m256i word = _mm256_set1_epi32(x.sums[t * x.sum_stride + c]);
      const __m256i rest = _mm256_sub_epi16(pairs[t], word);
      isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(rest, _mm256_set1_epi16(1)));
    }
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(load_halves(tile.d, half), isums, x, sums);
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<ChunkFrame<Kernel>, 4, 2, 1>(args);
}

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run<Groups<TileQ4_K>>(args); }
void matvec_q5_k(const MatVecArgs& args) { run<Groups<TileQ5_K>>(args); }
void matvec_q6_k(const MatVecArgs& args) { run<Sixteens<TileQ6_K>>(args); }
void matvec_q2_k(const MatVecArgs& args) { run<Sixteens<TileQ2_K>>(args); }
void matvec_q3_k(const MatVecArgs& args) { run<Sixteens<TileQ3_K>>(args); }
void matvec_iq4_xs(const MatVecArgs& args) { run<TableGroups>(args); }
void matvec_tq2_0(const MatVecArgs& args) { run<TwoBits>(args); }

}  // namespace godwit::cpu::avx2
