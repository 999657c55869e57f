// The loops of the AVX2 block kernels over the blocks of a row tile: sums cleared, weights
// prefetched, sums stored. A kernel says what one tile, or one chunk of a tile, adds.
// Included only by files compiled for AVX2; all in an unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>

#include "backend/cpu/lanes_avx2.h"

namespace godwit::cpu::avx2 {
namespace {

template <class Vector, size_t kHalves, size_t kTokens>
[[gnu::always_inline]] inline void clear(Vector (&sums)[kHalves][kTokens]) {
  for (auto& half : sums) {
    for (Vector& sum : half) sum = Vector{};
  }
}

// sums += d * dx * isums, once per block of 256 columns.
template <size_t kTokens>
[[gnu::always_inline]] inline void add_scaled(__m256 d, const __m256i (&isums)[kTokens],
                                              const Activations& x, __m256 (&sums)[kTokens]) {
#pragma GCC unroll 8
  for (size_t t = 0; t < kTokens; ++t) {
    const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(x.scales[t * x.scale_stride]));
    sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isums[t]), scale, sums[t]);
  }
}

// Tiles that enter the sums at once. Kernel: Tile; kColumns of a tile; add_half(tile, half, x, b,
// sums), which adds one half of tile b of the row to sums[kTokens].
template <class Kernel>
struct TileFrame {
  using Tile = typename Kernel::Tile;
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / Kernel::kColumns * sizeof(Tile); }

  // kHalves halves of the rows, from half `first` on.
  template <size_t kTokens, size_t kHalves, bool kPrefetch>
  [[gnu::always_inline]] static void multiply_halves(const TileJob& job, size_t first) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    __m256 sums[kHalves][kTokens];
    clear(sums);
    for (size_t b = 0; b < job.cols / Kernel::kColumns; ++b, ++tile) {
      if constexpr (kPrefetch) prefetch_weights<sizeof(Tile)>(tile);
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) Kernel::add_half(*tile, first + h, job.x, b, sums[h]);
    }
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) store_sums(sums[h], job, first + h);
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    multiply_by_halves<TileFrame, kTokens, kPrefetch>(job);
  }
};

// Tiles of 256 columns in chunks, which add integers; these enter the sums once per tile. Kernel:
// Tile; add_chunk(chunk, half, x, c, isums), where x begins with the tile's columns and c is the
// chunk's number; finish_block(tile, half, isums, x, sums), x the same.
template <class Kernel>
struct ChunkFrame {
  using Tile = typename Kernel::Tile;
  static constexpr size_t kChunks = sizeof(Tile::chunks) / sizeof(Tile::chunks[0]);
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  template <size_t kTokens, size_t kHalves, bool kPrefetch>
  [[gnu::always_inline]] static void multiply_halves(const TileJob& job, size_t first) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    __m256 sums[kHalves][kTokens];
    clear(sums);
    Activations x = job.x;
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile, x = skip_block256(x)) {
      __m256i isums[kHalves][kTokens];
      clear(isums);
      for (size_t c = 0; c < kChunks; ++c) {
        const auto& chunk = tile->chunks[c];
        if constexpr (kPrefetch) prefetch_weights<(sizeof(Tile) + kChunks - 1) / kChunks>(&chunk);
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) Kernel::add_chunk(chunk, first + h, x, c, isums[h]);
      }
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        Kernel::finish_block(*tile, first + h, isums[h], x, sums[h]);
      }
    }
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) store_sums(sums[h], job, first + h);
  }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    multiply_by_halves<ChunkFrame, kTokens, kPrefetch>(job);
  }
};

}  // namespace
}  // namespace godwit::cpu::avx2
