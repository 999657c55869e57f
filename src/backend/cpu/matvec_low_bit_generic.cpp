// Computes: y[t, r] = sum over scales d of row r of d * (sum over the blocks b of x that d covers
// of
//   dx[t, b] * dot(q[r, b], x[t, b])); a scale of NVFP4 covers half a block of x.
// Shapes and types: weights in tiles of low_bit_tiles.h, [rows / 16, cols / tile]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the tiles once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. A dot is an integer. Per scale, in the order of the columns,
//   p = float(dot) * dx of its first block, p = fma(float(dot), dx, p) of the others, then
//   s = fma(p, d, s): d comes last because that of MXFP4 may be subnormal.
// Reference: this file defines the result for the other instruction sets.
#include <cmath>
#include <cstdint>

#include "backend/cpu/generic_rows.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "quant/value_tables.h"

namespace godwit::cpu::generic {
namespace {

// One row of one tile: signed codes and scales, each of kColumns / n scales.
template <size_t kColumns>
struct TileRow {
  int16_t q[kColumns];
  float scales[kColumns / 16];
  size_t n_scales = 1;
};

void unpack(const TileMXFP4& tile, size_t row, TileRow<32>& out) {
  for (size_t i = 0; i < 32; ++i) {
    const int byte = tile.nibbles[i % 16 / 4][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(quant::fp4_doubled_value((byte >> (4 * (i / 16))) & 15));
  }
  out.scales[0] = std::ldexp(1.0f, tile.exponents[row] - 128);
}

void unpack(const TileNVFP4& tile, size_t row, TileRow<64>& out) {
  for (size_t i = 0; i < 64; ++i) {
    const TileNVFP4::Part& part = tile.parts[i / 32];
    const int byte = part.nibbles[i % 16 / 4][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(quant::fp4_doubled_value((byte >> (4 * (i % 32 / 16))) & 15));
    const int half = part.scales[i % 32 / 16][row] << 7;
    out.scales[i / 16] = 128.0f * f16_to_f32(static_cast<uint16_t>(half));
  }
  out.n_scales = 4;
}

void unpack(const TileQ2_0& tile, size_t row, TileRow<64>& out) {
  for (size_t i = 0; i < 64; ++i) {
    const int byte = tile.codes[i % 16 / 4][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(((byte >> (2 * (i / 16))) & 3) - 1);
  }
  out.scales[0] = load_half(tile.scales, row);
}

void unpack(const TileQ1_0& tile, size_t row, TileRow<128>& out) {
  for (size_t i = 0; i < 128; ++i) {
    const int byte = tile.codes[i / 32][4 * row + i % 4];
    out.q[i] = static_cast<int16_t>(2 * ((byte >> (i % 32 / 4)) & 1) - 1);
  }
  out.scales[0] = load_half(tile.scales, row);
}

float dot(const int16_t* weights, const int8_t* q, size_t n) {
  int sum = 0;
  for (size_t i = 0; i < n; ++i) sum += weights[i] * q[i];
  return static_cast<float>(sum);
}

// Adds one row of a tile to s; q and scales are those of x from the tile's first column.
template <size_t kColumns>
void add_row(const TileRow<kColumns>& row, const int8_t* q, const float* scales, float& s) {
  const size_t covered = kColumns / row.n_scales;  // columns
  const size_t piece = std::min<size_t>(covered, 32);
  for (size_t begin = 0; begin < kColumns; begin += covered) {
    float product = 0;
    for (size_t i = begin; i < begin + covered; i += piece) {
      const float part = dot(row.q + i, q + i, piece);
      product = i == begin ? part * scales[i / 32] : std::fma(part, scales[i / 32], product);
    }
    s = std::fma(product, row.scales[begin / covered], s);
  }
}

template <class Tile>
void run(const MatVecArgs& args) {
  constexpr size_t kColumns = Tile::kColumns;
  const auto add_tile = [](const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
                           float(*sums)[kTileRows]) {
    for (size_t r = 0; r < kTileRows; ++r) {
      TileRow<kColumns> row;
      unpack(tile, r, row);
      for (size_t t = 0; t < n_tokens; ++t) {
        const int8_t* q = x.q + t * x.q_stride + kColumns * block;
        add_row(row, q, x.scales + t * x.scale_stride + kColumns / 32 * block, sums[t][r]);
      }
    }
  };
  run_tiles<Tile, kColumns>(args, add_tile);
}

}  // namespace

void matvec_mxfp4(const MatVecArgs& args) { run<TileMXFP4>(args); }
void matvec_nvfp4(const MatVecArgs& args) { run<TileNVFP4>(args); }
void matvec_q1_0(const MatVecArgs& args) { run<TileQ1_0>(args); }
void matvec_q2_0(const MatVecArgs& args) { run<TileQ2_0>(args); }

}  // namespace godwit::cpu::generic
