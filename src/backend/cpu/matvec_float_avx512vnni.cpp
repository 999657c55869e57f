// Computes: what matvec_float_generic.cpp says.
// Shapes and types: weights in columns of 16 rows, see tile_layout.h; x kF32; any cols.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: rows * cols * (4 or 2) of weights, once per chunk of tokens.
//   Floor = bytes / read bandwidth; measured: docs/BENCHMARKS.md.
// Work split: a lane is a row; 16 rows by up to 6 tokens, or, F16 and BF16 from 12 tokens on, 32
//   rows by 3 tokens at a time; four partial sums each, 24 accumulators.
// Arithmetic: exact; f32 accumulators, fma.
// Reference: matvec_float_generic.cpp.
// Tried and rejected: 16 rows by 6 tokens for F16, BF16: 26.4 instead of 29.5 multiply-adds per
//   cycle; 32 rows by 3 tokens for F32: 19.5 instead of 24.4 (docs/NEGATIVE_RESULTS.md).

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

// The sums of kTiles row tiles by kTokens tokens, in four parts by column mod 4.
template <class Type, size_t kTiles, size_t kTokens>
struct PartialSums {
  __m512 parts[4][kTiles][kTokens];

  [[gnu::always_inline]] PartialSums() {
    for (auto& tiles : parts) {
      for (auto& tokens : tiles) {
        for (__m512& part : tokens) part = _mm512_setzero_ps();
      }
    }
  }

  // Column k < 4 of the tiles, which lie tile_bytes apart; x is its value for the first token.
  [[gnu::always_inline]] void add_column(const std::byte* tile, size_t tile_bytes, size_t k,
                                         const float* x, size_t x_stride) {
    __m512 weights[kTiles];
#pragma GCC unroll 2
    for (size_t i = 0; i < kTiles; ++i) weights[i] = Type::column(tile + i * tile_bytes, k);
#pragma GCC unroll 8
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512 value = _mm512_set1_ps(x[t * x_stride]);
#pragma GCC unroll 2
      for (size_t i = 0; i < kTiles; ++i) {
        parts[k][i][t] = _mm512_fmadd_ps(weights[i], value, parts[k][i][t]);
      }
    }
  }

  [[gnu::always_inline]] void store(const TileJob& job) const {
#pragma GCC unroll 2
    for (size_t i = 0; i < kTiles; ++i) {
      __m512 sums[kTokens];
#pragma GCC unroll 8
      for (size_t t = 0; t < kTokens; ++t) {
        sums[t] = _mm512_add_ps(_mm512_add_ps(parts[0][i][t], parts[1][i][t]),
                                _mm512_add_ps(parts[2][i][t], parts[3][i][t]));
      }
      store_sums(sums, job, i);
    }
  }
};

template <class Type, size_t kTiles>
struct Tiles {
  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const float* x = job.x.f32;
    const size_t stride = job.x.f32_stride;
    const size_t tile_bytes = Type::tile_bytes(job.cols);
    const std::byte* tile = job.weights;
    PartialSums<Type, kTiles, kTokens> sums;
    size_t c = 0;
    for (; c + 4 <= job.cols; c += 4, tile += Type::kFourColumnsBytes) {
      if constexpr (kPrefetch) {
#pragma GCC unroll 2
        for (size_t i = 0; i < kTiles; ++i) {
          prefetch_weights<Type::kFourColumnsBytes>(tile + i * tile_bytes);
        }
      }
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) sums.add_column(tile, tile_bytes, k, x + c + k, stride);
    }
#pragma GCC unroll 3
    for (size_t k = 0; k < 3; ++k) {
      if (c + k < job.cols) sums.add_column(tile, tile_bytes, k, x + c + k, stride);
    }
    sums.store(job);
  }
};

template <class Type>
struct Columns : Tiles<Type, 1> {
  static constexpr size_t kActivationBytes = 4;
  static size_t tile_bytes(size_t cols) { return Type::tile_bytes(cols); }
};

// A broadcast from memory costs a load per fma, and two loads per cycle are all there are: two row
// tiles at once halve them. For F32 the weights' own bytes would become the limit.
template <class Type>
struct PairedColumns : Columns<Type> {
  static constexpr size_t kPairTokens = 3;
  using Pair = Tiles<Type, 2>;
};

}  // namespace

void matvec_f32(const MatVecArgs& args) { run_rows<Columns<F32>, 6, 4, 2, 1>(args); }
void matvec_f16(const MatVecArgs& args) { run_rows<PairedColumns<F16>, 6, 4, 2, 1>(args); }
void matvec_bf16(const MatVecArgs& args) { run_rows<PairedColumns<BF16>, 6, 4, 2, 1>(args); }

}  // namespace godwit::cpu::avx512vnni
