// Computes: y[t, r] = sum over blocks b of d * dx * (sum over groups g of scale_g * dot_g), for
//   Q4_K and Q5_K minus dmin * dx * (sum over groups of min_g * sum of x over the group).
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the tiles once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. Both inner sums are integers; then per block, in block order,
//   s = fma(float(isum), d * dx, s), and for Q4_K, Q5_K s = fma(-float(imin), dmin * dx, s).
// Reference: this file defines the result for the other instruction sets.
#include <cmath>
#include <cstdint>

#include "backend/cpu/generic_rows.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu::generic {
namespace {

// One row of one tile: signed codes, a scale for each 16 of them, and minima for each 32.
struct BlockRow {
  int16_t q[256];
  int scales[16];
  int mins[8];
};

template <class Tile>
void unpack_groups(const Tile& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) {
    const auto& chunk = tile.chunks[i / 64];
    const size_t group = i % 64 / 32;
    const size_t j = i % 32 / 4;
    out.q[i] = (chunk.nibbles[j][4 * row + i % 4] >> (4 * group)) & 15;
    if constexpr (requires { chunk.high; }) {
      const int high = (chunk.high[group][4 * row + i % 4] >> j) & 1;
      out.q[i] = static_cast<int16_t>(out.q[i] | high << 4);
    }
  }
  for (size_t g = 0; g < 8; ++g) {
    const auto& chunk = tile.chunks[g / 2];
    out.scales[2 * g] = out.scales[2 * g + 1] = chunk.scales[g % 2][row];
    out.mins[g] = chunk.mins[row][g % 2];
  }
}

void unpack(const TileQ4_K& tile, size_t row, BlockRow& out) { unpack_groups(tile, row, out); }
void unpack(const TileQ5_K& tile, size_t row, BlockRow& out) { unpack_groups(tile, row, out); }
void unpack(const TileQ6_K& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const size_t j = i % 16 / 4;
    const auto& chunk = tile.chunks[i % 128 / 16];
    const int low = (chunk.low[j][4 * row + i % 4] >> (4 * half)) & 15;
    const int high = (chunk.high[j / 2][4 * row + i % 4] >> (4 * half + 2 * (j % 2))) & 3;
    out.q[i] = static_cast<int16_t>((low | high << 4) - 32);
  }
  for (size_t c = 0; c < 8; ++c) {
    out.scales[c] = tile.chunks[c].scales[row][0];
    out.scales[8 + c] = tile.chunks[c].scales[row][1];
  }
}

int scaled_dot(const BlockRow& row, const int8_t* q) {
  int sum = 0;
  for (size_t g = 0; g < 16; ++g) {
    int dot = 0;
    for (size_t i = 16 * g; i < 16 * (g + 1); ++i) dot += row.q[i] * q[i];
    sum += row.scales[g] * dot;
  }
  return sum;
}

// min_g times the sum of x over group g, for all eight groups.
int scaled_mins(const BlockRow& row, const int32_t* sum_words) {
  int sum = 0;
  for (size_t g = 0; g < 8; ++g) {
    int16_t pair[2];
    std::memcpy(pair, sum_words + g / 2, sizeof(pair));
    sum += row.mins[g] * pair[g % 2];
  }
  return sum;
}

template <class Tile>
void add_tile(const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
              float (*sums)[kTileRows]) {
  for (size_t r = 0; r < kTileRows; ++r) {
    BlockRow row;
    unpack(tile, r, row);
    for (size_t t = 0; t < n_tokens; ++t) {
      const float dx = x.scales[t * x.scale_stride + block];
      const int dot = scaled_dot(row, x.q + t * x.q_stride + 256 * block);
      float& s = sums[t][r];
      s = std::fma(static_cast<float>(dot), load_half(tile.d, r) * dx, s);
      if constexpr (requires { tile.dmin; }) {
        const int32_t* words = x.sums + t * x.sum_stride + kSumWordsPerBlock256 * block;
        const auto mins = static_cast<float>(scaled_mins(row, words));
        s = std::fma(-mins, load_half(tile.dmin, r) * dx, s);
      }
    }
  }
}

template <class Tile>
void run(const MatVecArgs& args) {
  run_tiles<Tile, 256>(args,
                       [](const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
                          float(*sums)[kTileRows]) { add_tile(tile, x, block, n_tokens, sums); });
}

}  // namespace

void matvec_q4_k(const MatVecArgs& args) { run<TileQ4_K>(args); }
void matvec_q5_k(const MatVecArgs& args) { run<TileQ5_K>(args); }
void matvec_q6_k(const MatVecArgs& args) { run<TileQ6_K>(args); }

}  // namespace godwit::cpu::generic
