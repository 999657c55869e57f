// Computes: what matvec_float_generic.cpp says.
// Shapes and types: weights in columns of 16 rows, see tile_layout.h; x kF32; any cols.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols * (4 or 2) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: see multiply_by_halves(); eight accumulators for one token, twelve for up to 3.
// Arithmetic: exact; f32 accumulators, fma.
// Reference: matvec_float_generic.cpp.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/intrinsics.h"
#include "backend/cpu/isa_rows.h"
#include "backend/cpu/lanes_avx2.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::avx2 {
namespace {

// Each type reads four columns of 16 rows, or the last one to three: here one half of one.
struct F32 {
  static constexpr size_t kFourColumnsBytes = 4 * kTileBytesF32;
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF32; }
  [[gnu::always_inline]] static __m256 column(const std::byte* tile, size_t c, size_t half) {
    const void* at = tile + c * kTileBytesF32 + 32 * half;
    return _mm256_loadu_ps(static_cast<const float*>(at));
  }
};

struct F16 {
  static constexpr size_t kFourColumnsBytes = 4 * kTileBytesF16;
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF16; }
  [[gnu::always_inline]] static __m256 column(const std::byte* tile, size_t c, size_t half) {
    return _mm256_cvtph_ps(load128(tile + c * kTileBytesF16 + 16 * half));
  }
};

struct BF16 {
  static constexpr size_t kFourColumnsBytes = 2 * kTileBytesBF16Pair;
  static size_t tile_bytes(size_t cols) { return (cols + 1) / 2 * kTileBytesBF16Pair; }
  [[gnu::always_inline]] static __m256 column(const std::byte* tile, size_t c, size_t half) {
    const void* at = tile + c / 2 * kTileBytesBF16Pair + 32 * half;
    const __m256i pair = _mm256_loadu_si256(static_cast<const __m256i*>(at));
    const __m256i upper = _mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
    return _mm256_castsi256_ps(c % 2 == 0 ? _mm256_slli_epi32(pair, 16) : upper);
  }
};

template <class Type>
struct Columns {
  static constexpr size_t kActivationBytes = 4;
  static size_t tile_bytes(size_t cols) { return Type::tile_bytes(cols); }

  // kHalves halves of the rows, from half `first` on.
  template <size_t kTokens, size_t kHalves>
  struct Partial {
    __m256 sums[4][kHalves][kTokens];

    [[gnu::always_inline]] void add_column(const std::byte* tile, size_t k, size_t first,
                                           const float* x, size_t stride) {
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        const __m256 weights = Type::column(tile, k, first + h);
#pragma GCC unroll 4
        for (size_t t = 0; t < kTokens; ++t) {
          const __m256 value = _mm256_broadcast_ss(x + t * stride);
          sums[k][h][t] = _mm256_fmadd_ps(weights, value, sums[k][h][t]);
        }
      }
    }
  };

  template <size_t kTokens, size_t kHalves, bool kPrefetch>
  [[gnu::always_inline]] static void multiply_halves(const TileJob& job, size_t first) {
    const float* x = job.x.f32;
    const size_t stride = job.x.f32_stride;
    Partial<kTokens, kHalves> partial;
    for (auto& halves : partial.sums) {
      for (auto& tokens : halves) {
        for (__m256& sum : tokens) sum = _mm256_setzero_ps();
      }
    }
    const std::byte* tile = job.weights;
    size_t c = 0;
    for (; c + 4 <= job.cols; c += 4, tile += Type::kFourColumnsBytes) {
      if constexpr (kPrefetch) prefetch_weights<Type::kFourColumnsBytes>(tile);
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) partial.add_column(tile, k, first, x + c + k, stride);
    }
#pragma GCC unroll 3
    for (size_t k = 0; k < 3; ++k) {
      if (c + k < job.cols) partial.add_column(tile, k, first, x + c + k, stride);
    }
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) {
      __m256 sums[kTokens];
#pragma GCC unroll 4
      for (size_t t = 0; t < kTokens; ++t) {
        sums[t] = _mm256_add_ps(_mm256_add_ps(partial.sums[0][h][t], partial.sums[1][h][t]),
                                _mm256_add_ps(partial.sums[2][h][t], partial.sums[3][h][t]));
      }
      store_sums(sums, job, first + h);
    }
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    multiply_by_halves<Columns, kTokens, kPrefetch>(job);
  }
};

}  // namespace

void matvec_f32(const MatVecArgs& args) { run_rows<Columns<F32>, 3, 2, 1>(args); }
void matvec_f16(const MatVecArgs& args) { run_rows<Columns<F16>, 3, 2, 1>(args); }
void matvec_bf16(const MatVecArgs& args) { run_rows<Columns<BF16>, 3, 2, 1>(args); }

}  // namespace godwit::cpu::avx2
