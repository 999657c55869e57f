// Computes: what matvec_block256_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); up to 4 tokens at a time.
// Arithmetic: exact. vpmaddubsw sums fit int16: eight of 15 * 127 * 2, four of 31 * 127 * 2, two of
//   63 * 127 * 2; vpmaddwd multiplies them by the group's scale and adds pairs in int32.
// Reference: matvec_block256_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx2 {
namespace {

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
    const __m256i both = load(chunk.nibbles[j], half);
    __m256i codes = kGroup == 0 ? both : _mm256_srli_epi16(both, 4);
    codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
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
template <class Tile>
struct Groups {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, size_t half,
                                                  const __m256i (&isums)[kTokens],
                                                  const Activations& x, size_t b,
                                                  __m256 (&sums)[kTokens]) {
    __m256i mins[4];
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) {
      mins[c] = _mm256_cvtepu8_epi16(load128(tile.chunks[c].mins[8 * half]));
    }
    const __m256 d = load_halves(tile.d, half);
    const __m256 dmin = load_halves(tile.dmin, half);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t* words = x.sums + t * x.sum_stride + kSumWordsPerBlock256 * b;
      __m256i imin = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (size_t c = 0; c < 4; ++c) {
        const __m256i pairs = _mm256_set1_epi32(words[c]);
        imin = _mm256_add_epi32(imin, _mm256_madd_epi16(mins[c], pairs));
      }
      const __m256 dx = _mm256_set1_ps(x.scales[t * x.scale_stride + b]);
      sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isums[t]), _mm256_mul_ps(d, dx), sums[t]);
      sums[t] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(imin), _mm256_mul_ps(dmin, dx), sums[t]);
    }
  }

  // kHalves halves of the rows, from half `first` on.
  template <size_t kTokens, size_t kHalves, bool kPrefetch>
  [[gnu::always_inline]] static void multiply_halves(const TileJob& job, size_t first) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m256 sums[kHalves][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m256i isums[kHalves][kTokens];
      for (auto& half : isums) {
        for (__m256i& isum : half) isum = _mm256_setzero_si256();
      }
      for (size_t c = 0; c < 4; ++c) {
        if constexpr (kPrefetch) prefetch_weights<(sizeof(Tile) + 3) / 4>(&tile->chunks[c]);
        const int8_t* q = x.q + 256 * b + 64 * c;
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) {
          add_group<0>(tile->chunks[c], first + h, q, x.q_stride, isums[h]);
          add_group<1>(tile->chunks[c], first + h, q + 32, x.q_stride, isums[h]);
        }
      }
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        finish_block(*tile, first + h, isums[h], x, b, sums[h]);
      }
    }
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) store_sums(sums[h], job, first + h);
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    multiply_by_halves<Groups, kTokens, kPrefetch>(job);
  }
};

// Four columns of one half of the rows of a Q6_K chunk: vector j of its column half kSide.
template <size_t kSide>
[[gnu::always_inline]] inline __m256i six_bit_codes(const TileQ6_K::Chunk& chunk, size_t half,
                                                    size_t j) {
  const __m256i both = load(chunk.low[j], half);
  const __m256i low = kSide == 0 ? both : _mm256_srli_epi16(both, 4);
  // The two bits of (j, side) lie at bit 2 (j mod 2) + 4 side and go to bit 4.
  const __m256i high = high_bit(load(chunk.high[j / 2], half), 2 * (j % 2) + 4 * kSide);
  return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(15)),
                         _mm256_and_si256(high, _mm256_set1_epi8(48)));
}

// isums[t] += scale * code * x over 16 columns; q points at them.
template <size_t kSide, size_t kTokens>
[[gnu::always_inline]] inline void add_side(const TileQ6_K::Chunk& chunk, size_t half,
                                            __m256i scales, const int8_t* q, size_t q_stride,
                                            __m256i (&isums)[kTokens]) {
#pragma GCC unroll 2
  for (size_t j = 0; j < 4; j += 2) {
    const __m256i even = six_bit_codes<kSide>(chunk, half, j);
    const __m256i odd = six_bit_codes<kSide>(chunk, half, j + 1);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* x = q + t * q_stride + 4 * j;
      const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(even, broadcast4(x)),
                                             _mm256_maddubs_epi16(odd, broadcast4(x + 4)));
      isums[t] = _mm256_add_epi32(isums[t], _mm256_madd_epi16(pairs, scales));
    }
  }
}

struct SixBit {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(TileQ6_K); }

  // isums += scale * (code - 32) * x over one chunk.
  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const TileQ6_K::Chunk& chunk, size_t half,
                                               const int8_t* q, const int32_t* sum_words,
                                               const Activations& x, __m256i (&isums)[kTokens]) {
    const __m256i pairs = _mm256_cvtepi8_epi16(load128(chunk.scales[8 * half]));
    const __m256i low = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff));
    const __m256i high = _mm256_srli_epi32(pairs, 16);
    // 32 times a scale fits int16.
    const __m256i offsets = _mm256_slli_epi16(pairs, 5);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i word = _mm256_set1_epi32(sum_words[t * x.sum_stride]);
      isums[t] = _mm256_sub_epi32(isums[t], _mm256_madd_epi16(offsets, word));
    }
    const __m256i scales0 = _mm256_or_si256(low, _mm256_slli_epi32(pairs, 16));
    add_side<0>(chunk, half, scales0, q, x.q_stride, isums);
    const __m256i scales1 = _mm256_or_si256(high, _mm256_slli_epi32(high, 16));
    add_side<1>(chunk, half, scales1, q + 128, x.q_stride, isums);
  }

  template <size_t kTokens, size_t kHalves, bool kPrefetch>
  [[gnu::always_inline]] static void multiply_halves(const TileJob& job, size_t first) {
    const auto* tile = reinterpret_cast<const TileQ6_K*>(job.weights);
    const Activations x = job.x;
    __m256 sums[kHalves][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m256i isums[kHalves][kTokens];
      for (auto& half : isums) {
        for (__m256i& isum : half) isum = _mm256_setzero_si256();
      }
      for (size_t c = 0; c < 8; ++c) {
        if constexpr (kPrefetch) prefetch_weights<sizeof(TileQ6_K) / 8>(&tile->chunks[c]);
        const int8_t* q = x.q + 256 * b + 16 * c;
        const int32_t* words = x.sums + kSumWordsPerBlock256 * b + 4 + c;
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) {
          add_chunk(tile->chunks[c], first + h, q, words, x, isums[h]);
        }
      }
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        const __m256 d = load_halves(tile->d, first + h);
#pragma GCC unroll 8
        for (size_t t = 0; t < kTokens; ++t) {
          const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scales[t * x.scale_stride + b]));
          sums[h][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isums[h][t]), scale, sums[h][t]);
        }
      }
    }
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) store_sums(sums[h], job, first + h);
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    multiply_by_halves<SixBit, kTokens, kPrefetch>(job);
  }
};

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run_rows<Groups<TileQ4_K>, 4, 2, 1>(args); }
void matvec_q5_k(const MatVecArgs& args) { run_rows<Groups<TileQ5_K>, 4, 2, 1>(args); }
void matvec_q6_k(const MatVecArgs& args) { run_rows<SixBit, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx2
