// Computes: what matvec_block256_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row, a tile is two halves; 8 rows by up to 4 tokens at a time.
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

// scale * dot of one group of 32 columns. `scales` has each row's scale in both its int16.
template <class Tile, size_t kGroup>
struct GroupCodes {
  static constexpr bool kFiveBits = requires(const Tile& tile) { tile.chunks[0].high; };
  __m256i codes[8];
  __m256i scales;

  [[gnu::always_inline]] GroupCodes(const typename Tile::Chunk& chunk, size_t half) {
    const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const __m256i both = load(chunk.nibbles[j], half);
      codes[j] = _mm256_and_si256(kGroup == 0 ? both : _mm256_srli_epi16(both, 4), mask);
    }
    if constexpr (kFiveBits) merge_high_bits(load(chunk.high[kGroup], half), codes);
    const __m256i single = _mm256_cvtepu8_epi32(load64(chunk.scales[kGroup] + 8 * half));
    scales = _mm256_or_si256(single, _mm256_slli_epi32(single, 16));
  }

  [[gnu::always_inline]] __m256i scaled_dot(const int8_t* q) const {
    if constexpr (kFiveBits) {
      return _mm256_add_epi32(_mm256_madd_epi16(pair_dots<0, 4>(codes, q), scales),
                              _mm256_madd_epi16(pair_dots<4, 4>(codes, q), scales));
    } else {
      return _mm256_madd_epi16(pair_dots<0, 8>(codes, q), scales);
    }
  }
};

// Q4_K and Q5_K.
template <class Tile>
struct Groups {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  template <size_t kGroup, size_t kTokens>
  [[gnu::always_inline]] static void add_group(const typename Tile::Chunk& chunk, size_t half,
                                               const int8_t* q, size_t q_stride,
                                               __m256i (&isums)[kTokens]) {
    const GroupCodes<Tile, kGroup> group(chunk, half);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* x = q + t * q_stride + 32 * kGroup;
      isums[t] = _mm256_add_epi32(isums[t], group.scaled_dot(x));
    }
  }

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

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m256 sums[2][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m256i isums[2][kTokens];
      for (auto& half : isums) {
        for (__m256i& isum : half) isum = _mm256_setzero_si256();
      }
      for (size_t c = 0; c < 4; ++c) {
        if constexpr (kPrefetch) prefetch_weights<(sizeof(Tile) + 3) / 4>(&tile->chunks[c]);
        const int8_t* q = x.q + 256 * b + 64 * c;
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) {
          add_group<0>(tile->chunks[c], half, q, x.q_stride, isums[half]);
          add_group<1>(tile->chunks[c], half, q, x.q_stride, isums[half]);
        }
      }
      finish_block(*tile, 0, isums[0], x, b, sums[0]);
      finish_block(*tile, 1, isums[1], x, b, sums[1]);
    }
    store_sums(sums[0], job, 0);
    store_sums(sums[1], job, 1);
  }
};

// One half of the rows of a Q6_K chunk: codes of its two groups of 16 columns, scales in pairs.
struct ChunkCodes {
  __m256i group0[4];
  __m256i group1[4];
  __m256i pairs;    // int16: scale of group 0, of group 1
  __m256i scales0;  // group 0's in both
  __m256i scales1;

  [[gnu::always_inline]] ChunkCodes(const TileQ6_K::Chunk& chunk, size_t half) {
    const __m256i low_mask = _mm256_set1_epi8(15);
    const __m256i high_mask = _mm256_set1_epi8(48);
    const auto join = [&](__m256i low, __m256i high) __attribute__((always_inline)) {
      return _mm256_or_si256(_mm256_and_si256(low, low_mask), _mm256_and_si256(high, high_mask));
    };
#pragma GCC unroll 2
    for (size_t k = 0; k < 2; ++k) {
      const __m256i high = load(chunk.high[k], half);
      const __m256i even = load(chunk.low[2 * k], half);
      const __m256i odd = load(chunk.low[2 * k + 1], half);
      group0[2 * k] = join(even, _mm256_slli_epi16(high, 4));
      group0[2 * k + 1] = join(odd, _mm256_slli_epi16(high, 2));
      group1[2 * k] = join(_mm256_srli_epi16(even, 4), high);
      group1[2 * k + 1] = join(_mm256_srli_epi16(odd, 4), _mm256_srli_epi16(high, 2));
    }
    pairs = _mm256_cvtepi8_epi16(load128(chunk.scales[8 * half]));
    const __m256i low = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff));
    const __m256i high = _mm256_srli_epi32(pairs, 16);
    scales0 = _mm256_or_si256(low, _mm256_slli_epi32(pairs, 16));
    scales1 = _mm256_or_si256(high, _mm256_slli_epi32(high, 16));
  }

  [[gnu::always_inline]] __m256i scaled_dot(const int8_t* q) const {
    const __m256i sum0 = _mm256_add_epi32(_mm256_madd_epi16(pair_dots<0, 2>(group0, q), scales0),
                                          _mm256_madd_epi16(pair_dots<2, 2>(group0, q), scales0));
    const int8_t* q1 = q + 128;
    const __m256i sum1 = _mm256_add_epi32(_mm256_madd_epi16(pair_dots<0, 2>(group1, q1), scales1),
                                          _mm256_madd_epi16(pair_dots<2, 2>(group1, q1), scales1));
    return _mm256_add_epi32(sum0, sum1);
  }
};

struct SixBit {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(TileQ6_K); }

  // isums += scale * (code - 32) * x over one chunk.
  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const TileQ6_K::Chunk& chunk, size_t half,
                                               const int8_t* q, const int32_t* sum_words,
                                               const Activations& x, __m256i (&isums)[kTokens]) {
    const ChunkCodes codes(chunk, half);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const __m256i word = _mm256_set1_epi32(sum_words[t * x.sum_stride]);
      const __m256i offset = _mm256_slli_epi32(_mm256_madd_epi16(codes.pairs, word), 5);
      const __m256i dot = codes.scaled_dot(q + t * x.q_stride);
      isums[t] = _mm256_add_epi32(isums[t], _mm256_sub_epi32(dot, offset));
    }
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const TileQ6_K*>(job.weights);
    const Activations x = job.x;
    __m256 sums[2][kTokens];
    for (auto& half : sums) {
      for (__m256& sum : half) sum = _mm256_setzero_ps();
    }
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m256i isums[2][kTokens];
      for (auto& half : isums) {
        for (__m256i& isum : half) isum = _mm256_setzero_si256();
      }
      for (size_t c = 0; c < 8; ++c) {
        if constexpr (kPrefetch) prefetch_weights<sizeof(TileQ6_K) / 8>(&tile->chunks[c]);
        const int8_t* q = x.q + 256 * b + 16 * c;
        const int32_t* words = x.sums + kSumWordsPerBlock256 * b + 4 + c;
        add_chunk(tile->chunks[c], 0, q, words, x, isums[0]);
        add_chunk(tile->chunks[c], 1, q, words, x, isums[1]);
      }
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half) {
        const __m256 d = load_halves(tile->d, half);
#pragma GCC unroll 16
        for (size_t t = 0; t < kTokens; ++t) {
          const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scales[t * x.scale_stride + b]));
          const __m256 isum = _mm256_cvtepi32_ps(isums[half][t]);
          sums[half][t] = _mm256_fmadd_ps(isum, scale, sums[half][t]);
        }
      }
    }
    store_sums(sums[0], job, 0);
    store_sums(sums[1], job, 1);
  }
};

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run_rows<Groups<TileQ4_K>, 4, 2, 1>(args); }
void matvec_q5_k(const MatVecArgs& args) { run_rows<Groups<TileQ5_K>, 4, 2, 1>(args); }
void matvec_q6_k(const MatVecArgs& args) { run_rows<SixBit, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx2
