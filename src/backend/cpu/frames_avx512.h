// The loops of the AVX-512 block kernels over the blocks of a row tile: sums cleared, weights
// prefetched, sums stored. A kernel says what one tile, or one chunk of a tile, adds.
// Included only by files compiled for AVX-512; all in an unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>

#include "backend/cpu/lanes_avx512.h"

namespace godwit::cpu::avx512vnni {
namespace {

// sums += d * dx * isums, once per block of 256 columns.
template <size_t kTokens>
[[gnu::always_inline]] inline void add_scaled(__m512 d, const __m512i (&isums)[kTokens],
                                              const Activations& x, __m512 (&sums)[kTokens]) {
#pragma GCC unroll 16
  for (size_t t = 0; t < kTokens; ++t) {
    const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scales[t * x.scale_stride]));
    sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isums[t]), scale, sums[t]);
  }
}

// Tiles that enter the sums at once. Kernel: Tile; kColumns of a tile; add_tile(tile, x, b, sums),
// which adds tile b of the row to sums[kTokens].
template <class Kernel>
struct TileFrame {
  using Tile = typename Kernel::Tile;
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / Kernel::kColumns * sizeof(Tile); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    const Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / Kernel::kColumns; ++b, ++tile) {
      if constexpr (kPrefetch) prefetch_weights<sizeof(Tile)>(tile);
      Kernel::add_tile(*tile, x, b, sums);
    }
    store_sums(sums, job, 0);
  }
};

// Tiles of 256 columns in chunks, which add integers; these enter the sums once per tile. Kernel:
// Tile; add_chunk(chunk, x, c, isums), where x begins with the tile's columns and c is the chunk's
// number; finish_block(tile, isums, x, sums), x the same.
template <class Kernel>
struct ChunkFrame {
  using Tile = typename Kernel::Tile;
  static constexpr size_t kChunks = sizeof(Tile::chunks) / sizeof(Tile::chunks[0]);
  static constexpr size_t kActivationBytes = 1;
  static size_t tile_bytes(size_t cols) { return cols / 256 * sizeof(Tile); }

  template <size_t kTokens, bool kPrefetch>
  static void multiply(const TileJob& job) {
    const auto* tile = reinterpret_cast<const Tile*>(job.weights);
    Activations x = job.x;
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    for (size_t b = 0; b < job.cols / 256; ++b, ++tile, x = skip_block256(x)) {
      __m512i isums[kTokens];
      for (__m512i& isum : isums) isum = _mm512_setzero_si512();
      // Unrolled it would leave the cache of decoded instructions: 16-20 % slower.
#pragma GCC unroll 1
      for (size_t c = 0; c < kChunks; ++c) {
        const auto& chunk = tile->chunks[c];
        if constexpr (kPrefetch) prefetch_weights<(sizeof(Tile) + kChunks - 1) / kChunks>(&chunk);
        Kernel::add_chunk(chunk, x, c, isums);
      }
      Kernel::finish_block(*tile, isums, x, sums);
    }
    store_sums(sums, job, 0);
  }
};

}  // namespace
}  // namespace godwit::cpu::avx512vnni
