// Computes: y[t, r] = sum over blocks b of d[r, b] * dx[t, b] * dot(q[r, b], x[t, b]), for Q4_1 and
//   Q5_1 plus m[r, b] * dx[t, b] * sum(x[t, b]).
// Shapes and types: weights in tiles of tile_layout.h, [rows / 16, cols / 32]; x kQ8Block32.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the tiles once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. The dot is an integer; then per block, in block order,
//   s = fma(float(dot), d * dx, s), and where there are minima s = fma(m, dx * float(sum), s).
// Reference: this file defines the result for the other instruction sets.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/generic_rows.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"
#include "quant/value_tables.h"

namespace godwit::cpu::generic {
namespace {

// The weights of one tile as signed codes [row][column].
struct Codes {
  int16_t q[kTileRows][32];
};

template <class Tile>
void unpack_nibbles(const Tile& tile, int offset, Codes& out) {
  for (size_t i = 0; i < 4 * 64; ++i) {
    const size_t row = i % 64 / 4;
    const size_t column = i / 64 * 4 + i % 4;
    const int byte = tile.nibbles[i / 64][i % 64];
    out.q[row][column] = static_cast<int16_t>((byte & 15) - offset);
    out.q[row][16 + column] = static_cast<int16_t>((byte >> 4) - offset);
  }
}

template <class Tile>
void add_high_bits(const Tile& tile, Codes& out) {
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      int16_t& q = out.q[i / 4][4 * j + i % 4];
      q = static_cast<int16_t>(q + (((tile.high[i] >> j) & 1) << 4));
    }
  }
}

void unpack(const TileQ4_0& tile, Codes& out) { unpack_nibbles(tile, 8, out); }
void unpack(const TileQ4_1& tile, Codes& out) { unpack_nibbles(tile, 0, out); }
void unpack(const TileQ5_0& tile, Codes& out) {
  unpack_nibbles(tile, 16, out);
  add_high_bits(tile, out);
}
void unpack(const TileQ5_1& tile, Codes& out) {
  unpack_nibbles(tile, 0, out);
  add_high_bits(tile, out);
}
void unpack(const TileQ8_0& tile, Codes& out) {
  for (size_t i = 0; i < 8 * 64; ++i) {
    const int code = tile.codes[i / 64][i % 64];
    out.q[i % 64 / 4][i / 64 * 4 + i % 4] = static_cast<int16_t>(code - 128);
  }
}

void unpack(const TileIQ4_NL& tile, Codes& out) {
  unpack_nibbles(tile, 0, out);
  for (auto& row : out.q) {
    for (int16_t& q : row) q = static_cast<int16_t>(quant::iq4_value(q));
  }
}

template <class Tile>
concept HasMins = requires(const Tile& tile) { tile.mins; };

template <class Tile>
void add_tile(const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
              float (*sums)[kTileRows]) {
  Codes codes;
  unpack(tile, codes);
  for (size_t t = 0; t < n_tokens; ++t) {
    const int8_t* q = x.q + t * x.q_stride + 32 * block;
    const float dx = x.scales[t * x.scale_stride + block];
    for (size_t r = 0; r < kTileRows; ++r) {
      int dot = 0;
      for (size_t i = 0; i < 32; ++i) dot += codes.q[r][i] * q[i];
      float& s = sums[t][r];
      s = std::fma(static_cast<float>(dot), load_half(tile.scales, r) * dx, s);
      if constexpr (HasMins<Tile>) {
        const auto sum = static_cast<float>(x.sums[t * x.sum_stride + block]);
        s = std::fma(load_half(tile.mins, r), dx * sum, s);
      }
    }
  }
}

template <class Tile>
void run(const MatVecArgs& args) {
  run_tiles<Tile, 32>(args,
                      [](const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
                         float(*sums)[kTileRows]) { add_tile(tile, x, block, n_tokens, sums); });
}

}  // namespace

void matvec_q4_0(const MatVecArgs& args) { run<TileQ4_0>(args); }
void matvec_q4_1(const MatVecArgs& args) { run<TileQ4_1>(args); }
void matvec_q5_0(const MatVecArgs& args) { run<TileQ5_0>(args); }
void matvec_q5_1(const MatVecArgs& args) { run<TileQ5_1>(args); }
void matvec_q8_0(const MatVecArgs& args) { run<TileQ8_0>(args); }
void matvec_iq4_nl(const MatVecArgs& args) { run<TileIQ4_NL>(args); }

}  // namespace godwit::cpu::generic
