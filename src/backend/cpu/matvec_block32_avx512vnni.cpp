// Computes: what matvec_block32_generic.cpp says.
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 32]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols / 32 * (tile bytes / 16) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a dword lane is a row; 16 rows by up to 8 tokens at a time.
// Arithmetic: exact. Codes stay unsigned; the offset is taken off by starting at
//   -offset * sum(x), and u8 x s8 dots accumulate in int32 without saturation.
// Reference: matvec_block32_generic.cpp.
// Tried and rejected: file layout, 82-95 % of the read bandwidth against 98 %
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

template <class Tile>
[[gnu::always_inline]] inline void unpack(const Tile& tile, __m512i (&codes)[8]) {
  const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i both = load(tile.nibbles[j]);
    codes[j] = _mm512_and_si512(both, mask);
    codes[4 + j] = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
  }
  if constexpr (requires { tile.high; }) merge_high_bits(load(tile.high), codes);
}

template <>
[[gnu::always_inline]] inline void unpack(const TileQ8_0& tile, __m512i (&codes)[8]) {
#pragma GCC unroll 8
  for (size_t j = 0; j < 8; ++j) codes[j] = load(tile.codes[j]);
}

template <class Tile>
constexpr int kOffset = 0;
template <>
constexpr int kOffset<TileQ4_0> = 8;
template <>
constexpr int kOffset<TileQ5_0> = 16;
template <>
constexpr int kOffset<TileQ8_0> = 128;

// One token's values of one block: codes times x, less the offset.
template <class Tile>
[[gnu::always_inline]] inline __m512i dot(const __m512i (&codes)[8], const int8_t* q, int32_t sum) {
  __m512i even = _mm512_set1_epi32(-kOffset<Tile> * sum);
  __m512i odd = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (size_t j = 0; j < 8; j += 2) {
    even = _mm512_dpbusd_epi32(even, codes[j], broadcast4(q + 4 * j));
    odd = _mm512_dpbusd_epi32(odd, codes[j + 1], broadcast4(q + 4 * j + 4));
  }
  return _mm512_add_epi32(even, odd);
}

template <class Tile>
struct Block32 {
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 32 * sizeof(Tile); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / 32; ++b, ++tile) {
      if constexpr (kPrefetch) prefetch_weights<sizeof(Tile)>(tile);
      __m512i codes[8];
      unpack(*tile, codes);
      const __m512 d = load_halves(tile->scales);
#pragma GCC unroll 16
      for (size_t t = 0; t < kTokens; ++t) {
        const int32_t sum = x.sums[t * x.sum_stride + b];
        const float dx = x.scales[t * x.scale_stride + b];
        const __m512i integer = dot<Tile>(codes, x.q + t * x.q_stride + 32 * b, sum);
        const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(dx));
        sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(integer), scale, sums[t]);
        if constexpr (requires { tile->mins; }) {
          const __m512 scaled_sum = _mm512_set1_ps(dx * static_cast<float>(sum));
          sums[t] = _mm512_fmadd_ps(load_halves(tile->mins), scaled_sum, sums[t]);
        }
      }
    }
    store_sums(sums, job, 0);
  }
};

}  // namespace

void matvec_q4_0(const MatVecArgs& args) { run_rows<Block32<TileQ4_0>, 8, 4, 2, 1>(args); }
void matvec_q4_1(const MatVecArgs& args) { run_rows<Block32<TileQ4_1>, 8, 4, 2, 1>(args); }
void matvec_q5_0(const MatVecArgs& args) { run_rows<Block32<TileQ5_0>, 8, 4, 2, 1>(args); }
void matvec_q5_1(const MatVecArgs& args) { run_rows<Block32<TileQ5_1>, 8, 4, 2, 1>(args); }
void matvec_q8_0(const MatVecArgs& args) { run_rows<Block32<TileQ8_0>, 8, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx512vnni
