// The loops around one row tile that all AVX kernels share: tokens in chunks that stay in the
// second-level cache, rows in tiles of 16, tokens of a chunk in groups for which the weights are
// unpacked once. Included only by files compiled for one instruction set: everything is in an
// unnamed namespace, because a shared inline function might be merged with a copy compiled for a
// machine that this one is not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/matvec_args.h"

namespace godwit::cpu {
namespace {

// What a kernel computes in one call: a row tile (or two), a group of tokens, all columns.
struct TileJob {
  const std::byte* weights;  // the row tile; a second one follows it
  size_t cols;
  Activations x;  // from the first token of the group on
  float* y;       // the first row and token
  size_t y_stride;
  size_t n_rows;  // rows to store, 1..16 (17..32 for two tiles)
};

[[gnu::always_inline]] inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

[[gnu::always_inline]] inline Activations skip_tokens(Activations x, size_t n) {
  x.f32 += n * x.f32_stride;
  x.q += n * x.q_stride;
  x.scales += n * x.scale_stride;
  x.sums += n * x.sum_stride;
  return x;
}

// The same tokens from one block of 256 columns (kQ8Block256) further on.
[[gnu::always_inline]] inline Activations skip_block256(Activations x) {
  x.q += 256;
  x.scales += 1;
  x.sums += kSumWordsPerBlock256;
  return x;
}

// Four activations as one dword, to be broadcast.
[[gnu::always_inline]] inline int32_t load_dword(const int8_t* q) {
  int32_t dword = 0;
  __builtin_memcpy(&dword, q, 4);
  return dword;
}

// Prefetches kBytes of weights, well ahead of their use. The arithmetic fills the out-of-order
// window, so the hardware's own prefetchers see too little; past the end of the weights a prefetch
// does nothing.
template <size_t kBytes>
[[gnu::always_inline]] inline void prefetch_weights(const void* at) {
  const auto* const bytes = static_cast<const char*>(at);
  const char* const near = bytes + prefetch_ahead.near_bytes;
#pragma GCC unroll 64
  for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(near + line, 0, 3);
  if (prefetch_ahead.far_bytes == 0) return;
  const char* const far = bytes + prefetch_ahead.far_bytes;
#pragma GCC unroll 64
  for (size_t line = 0; line < kBytes; line += 64) __builtin_prefetch(far + line, 0, 2);
}

// Not inlined: many of them in one function would share its registers, and spill.
template <class Kernel, size_t kTokens, bool kPrefetch>
[[gnu::noinline]] inline void multiply(const TileJob& job) {
  Kernel::template multiply<kTokens, kPrefetch>(job);
}

// Runs groups of kTokens tokens while there are as many left. The first group of a tile finds the
// weights in memory and prefetches them, the others find them in the cache.
template <class Kernel, size_t kTokens>
[[gnu::always_inline]] inline void run_groups(const TileJob& chunk, size_t n_tokens, size_t& t) {
  for (; t + kTokens <= n_tokens; t += kTokens) {
    TileJob job = chunk;
    job.x = skip_tokens(chunk.x, t);
    job.y += t * chunk.y_stride;
    if (t == 0) {
      multiply<Kernel, kTokens, true>(job);
    } else {
      multiply<Kernel, kTokens, false>(job);
    }
  }
}

// The second tile of a pair.
[[gnu::always_inline]] inline TileJob second_tile(const TileJob& pair, size_t tile_bytes) {
  TileJob job = pair;
  job.weights += tile_bytes;
  job.y += kTileRows;
  job.n_rows -= kTileRows;
  return job;
}

// All tokens of a chunk with one row tile, or, where the kernel can, with two.
template <class Kernel, size_t... kGroups>
[[gnu::always_inline]] inline void run_tiles(TileJob job, size_t n_tokens) {
  size_t t = 0;
  if constexpr (requires { Kernel::kPairTokens; }) {
    if (job.n_rows > kTileRows) {
      run_groups<typename Kernel::Pair, Kernel::kPairTokens>(job, n_tokens, t);
      const TileJob second = second_tile(job, Kernel::tile_bytes(job.cols));
      size_t second_t = t;
      (run_groups<Kernel, kGroups>(second, n_tokens, second_t), ...);
      job.n_rows = kTileRows;
    }
  }
  (run_groups<Kernel, kGroups>(job, n_tokens, t), ...);
}

// Kernel: static size_t tile_bytes(cols), and template <size_t kTokens, bool kPrefetch> static
// void multiply(const TileJob&); where a register tile of two row tiles pays, kPairTokens and
// Pair::multiply for so many tokens. kGroups: sizes of token groups, falling, the last 1.
template <class Kernel, size_t... kGroups>
inline void run_rows(const MatVecArgs& args) {
  // As many tokens at a time as leave room for a tile in a second-level cache of 1 MiB.
  constexpr size_t kChunkBytes = 512 * 1024;
  constexpr size_t kMinChunk = 48;  // so that weights are not read too often; divisible by groups
  const size_t token_bytes = args.cols * Kernel::kActivationBytes;
  size_t chunk = kChunkBytes / (token_bytes + 1) / kMinChunk * kMinChunk;
  if (chunk < kMinChunk) chunk = kMinChunk;
  const size_t tile_bytes = Kernel::tile_bytes(args.cols);
  for (size_t first = 0; first < args.n_tokens; first += chunk) {
    const size_t n_tokens = smaller(chunk, args.n_tokens - first);
    const Activations x = skip_tokens(args.x, first);
    size_t step = kTileRows;
    if constexpr (requires { Kernel::kPairTokens; }) {
      // For a few tokens one pass over the weights counts for more.
      if (n_tokens >= 4 * Kernel::kPairTokens) step = 2 * kTileRows;
    }
    for (size_t row = args.row_begin; row < args.row_end; row += step) {
      run_tiles<Kernel, kGroups...>({.weights = args.weights + row / kTileRows * tile_bytes,
                                     .cols = args.cols,
                                     .x = x,
                                     .y = args.y + first * args.y_stride + row,
                                     .y_stride = args.y_stride,
                                     .n_rows = smaller(step, args.row_end - row)},
                                    n_tokens);
    }
  }
}

}  // namespace
}  // namespace godwit::cpu
