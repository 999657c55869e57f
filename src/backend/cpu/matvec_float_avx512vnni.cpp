// Computes: what matvec_float_generic.cpp says.
// Shapes and types: weights in columns of 16 rows, see tile_layout.h; x kF32; any cols.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols * (4 or 2) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a lane is a row; 16 rows by up to 6 tokens at a time, four partial sums each.
// Arithmetic: exact; f32 accumulators, fma.
// Reference: matvec_float_generic.cpp.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx512vnni {
namespace {

// Each type reads four columns of 16 rows, or the last one to three.
struct F32 {
  static constexpr size_t kFourColumnsBytes = 4 * kTileBytesF32;
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF32; }
  [[gnu::always_inline]] static __m512 column(const std::byte* tile, size_t c) {
    return _mm512_loadu_ps(tile + c * kTileBytesF32);
  }
};

struct F16 {
  static constexpr size_t kFourColumnsBytes = 4 * kTileBytesF16;
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF16; }
  [[gnu::always_inline]] static __m512 column(const std::byte* tile, size_t c) {
    return _mm512_cvtph_ps(load256(tile + c * kTileBytesF16));
  }
};

struct BF16 {
  static constexpr size_t kFourColumnsBytes = 2 * kTileBytesBF16Pair;
  static size_t tile_bytes(size_t cols) { return (cols + 1) / 2 * kTileBytesBF16Pair; }
  [[gnu::always_inline]] static __m512 column(const std::byte* tile, size_t c) {
    const __m512i pair = _mm512_loadu_si512(tile + c / 2 * kTileBytesBF16Pair);
    // The upper column's mantissa would be right with the lower one's bits below it cleared.
    const __m512i upper = _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
    return _mm512_castsi512_ps(c % 2 == 0 ? _mm512_slli_epi32(pair, 16) : upper);
  }
};

template <class Type>
struct Columns {
  static constexpr size_t kActivationBytes = 4;
  static size_t tile_bytes(size_t cols) { return Type::tile_bytes(cols); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const float* x = job.x.f32;
    const size_t stride = job.x.f32_stride;
    __m512 partial[4][kTokens];
    for (auto& tokens : partial) {
      for (__m512& sum : tokens) sum = _mm512_setzero_ps();
    }
    const std::byte* tile = job.weights;
    size_t c = 0;
    for (; c + 4 <= job.cols; c += 4, tile += Type::kFourColumnsBytes) {
      if constexpr (kPrefetch) prefetch_weights<Type::kFourColumnsBytes>(tile);
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) {
        const __m512 weights = Type::column(tile, k);
#pragma GCC unroll 16
        for (size_t t = 0; t < kTokens; ++t) {
          const __m512 value = _mm512_set1_ps(x[t * stride + c + k]);
          partial[k][t] = _mm512_fmadd_ps(weights, value, partial[k][t]);
        }
      }
    }
#pragma GCC unroll 3
    for (size_t k = 0; k < 3; ++k) {
      if (c + k >= job.cols) break;
      const __m512 weights = Type::column(tile, k);
#pragma GCC unroll 16
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512 value = _mm512_set1_ps(x[t * stride + c + k]);
        partial[k][t] = _mm512_fmadd_ps(weights, value, partial[k][t]);
      }
    }
    __m512 sums[kTokens];
#pragma GCC unroll 16
    for (size_t t = 0; t < kTokens; ++t) {
      sums[t] = _mm512_add_ps(_mm512_add_ps(partial[0][t], partial[1][t]),
                              _mm512_add_ps(partial[2][t], partial[3][t]));
    }
    store_sums(sums, job);
  }
};

}  // namespace

void matvec_f32(const MatVecArgs& args) { run_rows<Columns<F32>, 6, 4, 2, 1>(args); }
void matvec_f16(const MatVecArgs& args) { run_rows<Columns<F16>, 6, 4, 2, 1>(args); }
void matvec_bf16(const MatVecArgs& args) { run_rows<Columns<BF16>, 6, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx512vnni
