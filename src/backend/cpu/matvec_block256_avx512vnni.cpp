// Computes: what matvec_block256_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 256 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. Everything within a block of 256 columns is an integer: group dots by
//   vpdpbusd, times the scale by vpmulld, minima and the offset of Q6_K by vpdpwssd on pairs.
// Reference: matvec_block256_generic.cpp.
// Tried and rejected: file layout, 87-90 % of the read bandwidth against 89-93 %
// (docs/NEGATIVE_RESULTS.md).

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx512vnni {
namespace {

// The 32 columns of one group: eight vectors of codes.
template <int kGroup, class Chunk>
[[gnu::always_inline]] inline void unpack_group(const Chunk& chunk, __m512i (&codes)[8]) {
  const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const __m512i both = load(chunk.nibbles[j]);
    codes[j] = _mm512_and_si512(kGroup == 0 ? both : _mm512_srli_epi16(both, 4), mask);
  }
  if constexpr (requires { chunk.high; }) {
    merge_high_bits(load(chunk.high[kGroup]), codes);
  }
}

// isums[t] += scale * dot of one group, for all tokens; q points at the group's columns.
template <int kGroup, size_t kTokens, class Chunk>
[[gnu::always_inline]] inline void add_group(const Chunk& chunk, const int8_t* q, size_t q_stride,
                                             __m512i (&isums)[kTokens]) {
  __m512i codes[8];
  unpack_group<kGroup>(chunk, codes);
  const __m128i scale_bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(chunk.scales[kGroup]));
  const __m512i scales = _mm512_cvtepu8_epi32(scale_bytes);
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
template <class Tile>
struct Groups {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m512i isums[kTokens];
      for (__m512i& isum : isums) isum = _mm512_setzero_si512();
      // Unrolled it would leave the cache of decoded instructions: 16-20 % slower.
#pragma GCC unroll 1
      for (size_t c = 0; c < 4; ++c) {
        const auto& chunk = tile->chunks[c];
        if constexpr (kPrefetch) prefetch_weights<(sizeof(Tile) + 3) / 4>(&chunk);
        const int8_t* q = x.q + 256 * b + 64 * c;
        add_group<0>(chunk, q, x.q_stride, isums);
        add_group<1>(chunk, q + 32, x.q_stride, isums);
      }
      finish_block(*tile, isums, x, b, sums);
    }
    store_sums(sums, job, 0);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void finish_block(const Tile& tile, const __m512i (&isums)[kTokens],
                                                  const Activations& x, size_t b,
                                                  __m512 (&sums)[kTokens]) {
    __m512i mins[4];
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) {
      mins[c] = _mm512_cvtepu8_epi16(load256(tile.chunks[c].mins));
    }
    const __m512 d = load_halves(tile.d);
    const __m512 dmin = load_halves(tile.dmin);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int32_t* words = x.sums + t * x.sum_stride + kSumWordsPerBlock256 * b;
      __m512i imin = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        imin = _mm512_dpwssd_epi32(imin, mins[c], _mm512_set1_epi32(words[c]));
      }
      const __m512 dx = _mm512_set1_ps(x.scales[t * x.scale_stride + b]);
      sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isums[t]), _mm512_mul_ps(d, dx), sums[t]);
      sums[t] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(imin), _mm512_mul_ps(dmin, dx), sums[t]);
    }
  }
};

// The 16 columns of each half of a Q6_K chunk.
[[gnu::always_inline]] inline void unpack_chunk(const TileQ6_K::Chunk& chunk, __m512i (&half0)[4],
                                                __m512i (&half1)[4]) {
  const __m512i low_mask = _mm512_set1_epi8(15);
  const __m512i code_mask = _mm512_set1_epi8(63);
  constexpr int kSelect = 0xca;  // a ? b : c
  const auto join = [&](__m512i low, __m512i high) __attribute__((always_inline)) {
    return _mm512_and_si512(_mm512_ternarylogic_epi32(low_mask, low, high, kSelect), code_mask);
  };
#pragma GCC unroll 2
  for (size_t k = 0; k < 2; ++k) {
    const __m512i high = load(chunk.high[k]);
    const __m512i even = load(chunk.low[2 * k]);
    const __m512i odd = load(chunk.low[2 * k + 1]);
    half0[2 * k] = join(even, _mm512_slli_epi16(high, 4));
    half0[2 * k + 1] = join(odd, _mm512_slli_epi16(high, 2));
    half1[2 * k] = join(_mm512_srli_epi16(even, 4), high);
    half1[2 * k + 1] = join(_mm512_srli_epi16(odd, 4), _mm512_srli_epi16(high, 2));
  }
}

[[gnu::always_inline]] inline __m512i dot16(const __m512i (&codes)[4], const int8_t* q) {
  __m512i dot = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) dot = _mm512_dpbusd_epi32(dot, codes[j], broadcast4(q + 4 * j));
  return dot;
}

struct SixBit {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(TileQ6_K); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const TileQ6_K*>(job.weights);
    const Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile) {
      __m512i isums[kTokens];    // sums of scale * code * x
      __m512i offsets[kTokens];  // sums of scale * x
      for (size_t t = 0; t < kTokens; ++t) isums[t] = offsets[t] = _mm512_setzero_si512();
      for (size_t c = 0; c < 8; ++c) {
        if constexpr (kPrefetch) prefetch_weights<sizeof(TileQ6_K) / 8>(&tile->chunks[c]);
        add_chunk(tile->chunks[c], x, b, c, isums, offsets);
      }
      const __m512 d = load_halves(tile->d);
#pragma GCC unroll 16
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512i isum = _mm512_sub_epi32(isums[t], _mm512_slli_epi32(offsets[t], 5));
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scales[t * x.scale_stride + b]));
        sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum), scale, sums[t]);
      }
    }
    store_sums(sums, job, 0);
  }

  template <size_t kTokens>
  [[gnu::always_inline]] static void add_chunk(const TileQ6_K::Chunk& chunk, const Activations& x,
                                               size_t b, size_t c, __m512i (&isums)[kTokens],
                                               __m512i (&offsets)[kTokens]) {
    __m512i half0[4];
    __m512i half1[4];
    unpack_chunk(chunk, half0, half1);
    const __m512i pairs = _mm512_cvtepi8_epi16(load256(chunk.scales));
    const __m512i scales0 = _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
    const __m512i scales1 = _mm512_srai_epi32(pairs, 16);
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      const int8_t* q = x.q + t * x.q_stride + 256 * b + 16 * c;
      const int32_t word = x.sums[t * x.sum_stride + kSumWordsPerBlock256 * b + 4 + c];
      offsets[t] = _mm512_dpwssd_epi32(offsets[t], pairs, _mm512_set1_epi32(word));
      isums[t] = _mm512_add_epi32(isums[t], _mm512_mullo_epi32(dot16(half0, q), scales0));
      isums[t] = _mm512_add_epi32(isums[t], _mm512_mullo_epi32(dot16(half1, q + 128), scales1));
    }
  }
};

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run_rows<Groups<TileQ4_K>, 8, 4, 2, 1>(args); }
void matvec_q5_k(const MatVecArgs& args) { run_rows<Groups<TileQ5_K>, 8, 4, 2, 1>(args); }
void matvec_q6_k(const MatVecArgs& args) { run_rows<SixBit, 8, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx512vnni
