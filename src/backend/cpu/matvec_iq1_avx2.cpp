// Computes: what matvec_grid_generic.cpp says, for IQ1_S and IQ1_M.
// Shapes and types: weights in tiles of low_bit_tiles.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); up to 4 tokens at a time.
// Arithmetic: exact. Codes are levels (IQ1_S) or 4 level + (1 where delta is 1) (IQ1_M); their dots
//   by vpmaddubsw fit int16 (sixteen of 2 * 127, eight of 9 * 127), vpmaddwd multiplies them by the
//   scale; what the codes are too large by comes off with the sums of x.
// Reference: matvec_grid_generic.cpp.
// Tried and rejected: entries of the codebook loaded one by one, 0.25-0.35 of the speed
//   (docs/NEGATIVE_RESULTS.md).
#include <cstddef>
#include <cstdint>

#include "backend/cpu/frames_avx2.h"
#include "backend/cpu/intrinsics.h"
#include "backend/cpu/iq1_tables.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"

namespace godwit::cpu::avx2 {
namespace {

// The bytes of eight rows, each in the dword of its row.
[[gnu::always_inline]] inline __m256i row_bytes(const uint8_t (&bytes)[16], size_t half) {
  return _mm256_cvtepu8_epi32(load64(bytes + 8 * half));
}

// The low and the high nibble of each row's byte, as int16.
[[gnu::always_inline]] inline __m256i nibble_pairs(__m256i both, int mask) {
  return _mm256_and_si256(_mm256_or_si256(both, _mm256_slli_epi32(both, 12)),
                          _mm256_set1_epi32(mask));
}

// The low (kHigh 0) or high int16 of each dword, in both.
template <int kHigh>
[[gnu::always_inline]] inline __m256i both_words(__m256i pairs) {
  const auto order = _mm256_set1_epi64x(kHigh == 0 ? 0x0504050401000100 : 0x0706070603020302);
  const __m256i lanes = _mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808);
  return _mm256_shuffle_epi8(pairs, _mm256_add_epi8(order, lanes));
}

// isum plus x times both int16 of each lane. word: that pair of x.
[[gnu::always_inline]] inline __m256i add_pairs(__m256i isum, __m256i pairs, int32_t word) {
  return _mm256_add_epi32(isum, _mm256_madd_epi16(pairs, _mm256_set1_epi32(word)));
}

template <size_t kTokens>
[[gnu::always_inline]] inline void add_products(const __m256i (&dots)[kTokens], __m256i scales,
                                                __m256i (&isums)[kTokens]) {
#pragma GCC unroll 8
  for (size_t t = 0; t < kTokens; ++t) {
    isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(dots[t], scales));
  }
}

struct IQ1_S {
  using Tile = TileIQ1_S;

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    const __m256i pairs = nibble_pairs(row_bytes(chunk.scales, half), 0x000f000f);
    const __m256i eightfold =
        _mm256_and_si256(_mm256_shuffle_epi8(broadcast16(kIq1EightfoldScales.bytes), pairs),
                         _mm256_set1_epi16(0x00ff));
    const __m256i offsets =
        _mm256_or_si256(_mm256_shuffle_epi8(broadcast16(kIq1Offsets.bytes), pairs),
                        _mm256_set1_epi16(static_cast<int16_t>(-256)));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = add_pairs(isums[t], offsets, x.sums[t * x.sum_stride + c]);
    }
    const int8_t* q = x.q + 64 * c;
    __m256i first[kTokens] = {};
    add_two_bits<0>(chunk.codes, half, q, x.q_stride, first);
    add_two_bits<1>(chunk.codes, half, q, x.q_stride, first);
    add_products(first, both_words<0>(eightfold), isums);
    __m256i second[kTokens] = {};
    add_two_bits<2>(chunk.codes, half, q, x.q_stride, second);
    add_two_bits<3>(chunk.codes, half, q, x.q_stride, second);
    add_products(second, both_words<1>(eightfold), isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(_mm256_mul_ps(_mm256_set1_ps(Tile::kUnit), load_halves(tile.d, half)), isums, x,
               sums);
  }
};

struct IQ1_M {
  using Tile = TileIQ1_M;

  // 1 in every byte of the rows where bit `bit` is clear.
  [[gnu::always_inline]] static __m256i ones_where_clear(__m256i dwords, __m256i bit) {
    const __m256i clear = _mm256_cmpeq_epi32(_mm256_and_si256(dwords, bit), _mm256_setzero_si256());
    return _mm256_and_si256(clear, _mm256_set1_epi8(1));
  }

  [[gnu::always_inline]] static __m256i late_ones(const uint8_t (&bits)[2], size_t half) {
    return ones_where_clear(_mm256_set1_epi32(bits[half]),
                            _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128));
  }

  // isums[t] += scales * dot of the 16 columns of one half of a pair, from q on.
  template <size_t kField, size_t kTokens>
  [[gnu::always_inline]] static void add_columns(const Tile::Chunk& chunk, size_t half,
                                                 __m256i early, __m256i late, __m256i scales,
                                                 const int8_t* q, size_t q_stride,
                                                 __m256i (&isums)[kTokens]) {
    __m256i dots[kTokens] = {};
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const __m256i levels =
          _mm256_and_si256(move_bit<2>(load(chunk.codes[j], half), kField), _mm256_set1_epi8(12));
      const __m256i codes = _mm256_or_si256(levels, j < 2 ? early : late);
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i x = broadcast4(q + t * q_stride + 4 * j);
        dots[t] = _mm256_add_epi16(dots[t], _mm256_maddubs_epi16(codes, x));
      }
    }
    add_products(dots, scales, isums);
  }

  template <size_t kPair, size_t kTokens>
  [[gnu::always_inline]] static void add_pair(const Tile::Chunk& chunk, size_t half,
                                              const Activations& x, size_t c,
                                              __m256i (&isums)[kTokens]) {
    const __m256i both = row_bytes(chunk.scales[kPair], half);
    const __m256i s = nibble_pairs(both, 0x00070007);
    const __m256i scales = _mm256_or_si256(_mm256_slli_epi32(s, 1), _mm256_set1_epi16(1));
    const __m256i offsets = _mm256_mullo_epi16(scales, _mm256_set1_epi16(-9));
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      isums[t] = add_pairs(isums[t], offsets, x.sums[t * x.sum_stride + 4 + 2 * c + kPair]);
    }
    const __m256i twice = _mm256_slli_epi32(scales, 1);
    const int8_t* q = x.q + 32 * c + 16 * kPair;
    add_columns<2 * kPair>(chunk, half, ones_where_clear(both, _mm256_set1_epi32(0x08)),
                           late_ones(chunk.late[kPair][0], half), both_words<0>(twice), q,
                           x.q_stride, isums);
    add_columns<2 * kPair + 4>(chunk, half, ones_where_clear(both, _mm256_set1_epi32(0x80)),
                               late_ones(chunk.late[kPair][1], half), both_words<1>(twice), q + 128,
                               x.q_stride, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const Tile::Chunk& chunk, size_t half,
                                               const Activations& x, size_t c,
                                               __m256i (&isums)[kTokens]) {
    add_pair<0>(chunk, half, x, c, isums);
    add_pair<1>(chunk, half, x, c, isums);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, __m256 (&sums)[kTokens]) {
    add_scaled(_mm256_mul_ps(_mm256_set1_ps(Tile::kUnit), load_halves(tile.d, half)), isums, x,
               sums);
  }
};

template <class Kernel>
void run(const MatVecArgs& args) {
  run_rows<ChunkFrame<Kernel>, 4, 2, 1>(args);
}

}  // namespace

void matvec_iq1_s(const MatVecArgs& args) { run<IQ1_S>(args); }
void matvec_iq1_m(const MatVecArgs& args) { run<IQ1_M>(args); }

}  // namespace godwit::cpu::avx2
