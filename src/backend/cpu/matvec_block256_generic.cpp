// Computes: y[t, r] = sum over blocks b of d * dx * (sum over groups g of scale_g * dot_g), for
//   Q2_K, Q4_K and Q5_K minus dmin * dx * (sum over groups of min_g * sum of x over the group).
// Shapes and types: weights in tiles of tile_layout.h and low_bit_tiles.h, [rows / 16, cols / 256];
//   x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the tiles once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. Both inner sums are integers; then per block, in block order,
//   s = fma(float(isum), d * dx, s), and where there are minima s = fma(-float(imin), dmin * dx,
//   s).
// Reference: this file defines the result for the other instruction sets.
#include <cmath>
#include <cstdint>

#include "backend/cpu/generic_rows.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"
#include "quant/value_tables.h"

namespace godwit::cpu::generic {
namespace {

// One row of one tile: signed codes, and a scale and a minimum for each 16 of them.
struct BlockRow {
  int16_t q[256];
  int scales[16];
  int mins[16];
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
    out.mins[2 * g] = out.mins[2 * g + 1] = chunk.mins[row][g % 2];
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

// Where column i of 256 lies in Q2_K and Q3_K, but for i mod 4.
struct PairPlace {
  size_t chunk;
  size_t pair;
  size_t side;  // half of the columns
  size_t j;
};
PairPlace pair_place(size_t i) { return {i % 128 / 32, i % 32 / 16, i / 128, i % 16 / 4}; }

// The two bits of a code that `codes` of Q2_K and Q3_K hold.
template <class Tile>
int pair_code(const Tile& tile, size_t row, size_t i) {
  const PairPlace at = pair_place(i);
  const int byte = tile.chunks[at.chunk].codes[at.j][4 * row + i % 4];
  return (byte >> (2 * at.pair + 4 * at.side)) & 3;
}

void unpack(const TileQ2_K& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) out.q[i] = static_cast<int16_t>(pair_code(tile, row, i));
  for (size_t g = 0; g < 16; ++g) {
    const PairPlace at = pair_place(16 * g);
    const int byte = tile.chunks[at.chunk].scales[at.pair][row][at.side];
    out.scales[g] = byte & 15;
    out.mins[g] = byte >> 4;
  }
}

void unpack(const TileQ3_K& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) {
    const PairPlace at = pair_place(i);
    const int byte = tile.chunks[at.chunk].high[at.pair][4 * row + i % 4];
    const int high = (byte >> (at.j + 4 * at.side)) & 1;
    out.q[i] = static_cast<int16_t>((pair_code(tile, row, i) | high << 2) - 4);
  }
  for (size_t g = 0; g < 16; ++g) {
    const PairPlace at = pair_place(16 * g);
    out.scales[g] = tile.chunks[at.chunk].scales[at.pair][row][at.side];
  }
}

void unpack(const TileIQ4_XS& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t side = i % 64 / 32;
    const int byte = tile.chunks[i / 64].nibbles[i % 32 / 4][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(quant::iq4_value((byte >> (4 * side)) & 15));
    out.scales[i / 16] = tile.chunks[i / 64].scales[row][side];
  }
}

void unpack(const TileTQ2_0& tile, size_t row, BlockRow& out) {
  for (size_t i = 0; i < 256; ++i) {
    const int byte = tile.chunks[i / 64].codes[i % 16 / 4][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(((byte >> (2 * (i % 64 / 16))) & 3) - 1);
    out.scales[i / 16] = 1;
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

// min_g times the sum of x over group g, for all sixteen groups.
int scaled_mins(const BlockRow& row, const int32_t* sum_words) {
  int sum = 0;
  for (size_t g = 0; g < 16; ++g) {
    int16_t pair[2];
    std::memcpy(pair, sum_words + 4 + g % 8, sizeof(pair));
    sum += row.mins[g] * pair[g / 8];
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
void matvec_q2_k(const MatVecArgs& args) { run<TileQ2_K>(args); }
void matvec_q3_k(const MatVecArgs& args) { run<TileQ3_K>(args); }
void matvec_iq4_xs(const MatVecArgs& args) { run<TileIQ4_XS>(args); }
void matvec_tq2_0(const MatVecArgs& args) { run<TileTQ2_0>(args); }

}  // namespace godwit::cpu::generic
