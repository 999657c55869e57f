// Computes: y[t, r] = sum over blocks b of (kUnit * d) * dx * (sum over groups g of scale_g *
//   dot_g), for the types whose weights come from a codebook.
// Shapes and types: weights in tiles of grid_tiles.h and, for IQ1, low_bit_tiles.h,
//   [rows / 16, cols / 256]; x kQ8Block256.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the tiles once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. The inner sum is an integer: at most 256 * 62 * 127 * 31 (IQ3_XXS), 2^26. Then
//   per block, in block order, s = fma(float(isum), (kUnit * d) * dx, s).
// Reference: this file defines the result for the other instruction sets.
#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/cpu/generic_rows.h"
#include "backend/cpu/grid_tables.h"
#include "backend/cpu/grid_tiles.h"
#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/matvec_kernels.h"

namespace godwit::cpu::generic {
namespace {

// One row of one tile: signed weights without scale, and a scale for each 16 of them.
struct GridRow {
  int8_t q[256];
  int scales[16];
};

unsigned plane_bit(const uint8_t (&plane)[8], size_t row, size_t j) {
  return (uint32_t{plane[row / 2]} >> (4 * (row % 2) + j)) & 1u;
}

unsigned nibble(const uint8_t (&nibbles)[8], size_t row) {
  return (uint32_t{nibbles[row / 2]} >> (4 * (row % 2))) & 15u;
}

uint32_t load_word(const uint8_t (&words)[64], size_t row) {
  uint32_t word = 0;
  std::memcpy(&word, words + 4 * row, 4);
  return word;
}

unsigned with_parity(unsigned signs7) {
  return signs7 | (static_cast<unsigned>(std::popcount(signs7)) & 1u) << 7;
}

// The eight weights of code j of group g.
void put_entry(uint64_t entry, unsigned signs, size_t g, size_t j, GridRow& out) {
  for (size_t i = 0; i < 8; ++i) {
    const auto weight = static_cast<int8_t>(entry >> (8 * i));
    out.q[32 * g + 8 * j + i] = (signs >> i & 1) != 0 ? static_cast<int8_t>(-weight) : weight;
  }
}

void put_scales(unsigned s0, unsigned s1, size_t g, GridRow& out) {
  out.scales[2 * g] = static_cast<int>(2 * s0 + 1);
  out.scales[2 * g + 1] = static_cast<int>(2 * s1 + 1);
}

template <size_t kPlanes>
size_t wide_code(const uint8_t (&codes)[64], const uint8_t (&planes)[kPlanes][8], size_t row,
                 size_t j) {
  size_t code = codes[4 * row + j];
  for (size_t k = 0; k < kPlanes; ++k) code |= size_t{plane_bit(planes[k], row, j)} << (8 + k);
  return code;
}

uint64_t join(uint32_t even, uint32_t odd) { return even | uint64_t{odd} << 32; }

void unpack(const TileIQ2_XXS::Group& group, size_t row, size_t g, GridRow& out) {
  const uint32_t word = load_word(group.words, row);
  for (size_t j = 0; j < 4; ++j) {
    const uint64_t entry = kGridIQ2_XXS.entries[group.codes[4 * row + j]];
    put_entry(entry, with_parity(word >> (7 * j) & 127), g, j, out);
  }
  put_scales(word >> 28, word >> 28, g, out);
}

void unpack(const TileIQ3_XXS::Group& group, size_t row, size_t g, GridRow& out) {
  const uint32_t word = load_word(group.words, row);
  for (size_t j = 0; j < 4; ++j) {
    const uint32_t even = kGridIQ3_XXS.entries[group.even[4 * row + j]];
    const uint32_t odd = kGridIQ3_XXS.entries[group.odd[4 * row + j]];
    put_entry(join(even, odd), with_parity(word >> (7 * j) & 127), g, j, out);
  }
  put_scales(word >> 28, word >> 28, g, out);
}

void unpack(const TileIQ2_XS::Group& group, size_t row, size_t g, GridRow& out) {
  for (size_t j = 0; j < 4; ++j) {
    const unsigned high = group.high[4 * row + j];
    const size_t code = group.codes[4 * row + j] | (high & 1u) << 8;
    put_entry(kGridIQ2_XS.entries[code], with_parity(high >> 1), g, j, out);
  }
  put_scales(nibble(group.scales[0], row), nibble(group.scales[1], row), g, out);
}

void unpack(const TileIQ2_S::Group& group, size_t row, size_t g, GridRow& out) {
  for (size_t j = 0; j < 4; ++j) {
    const size_t code = wide_code(group.codes, group.planes, row, j);
    put_entry(kGridIQ2_S.entries[code], group.signs[4 * row + j], g, j, out);
  }
  put_scales(nibble(group.scales[0], row), nibble(group.scales[1], row), g, out);
}

void unpack(const TileIQ3_S::Group& group, size_t row, size_t g, GridRow& out) {
  for (size_t j = 0; j < 4; ++j) {
    const size_t even = group.even[4 * row + j] | plane_bit(group.even_plane, row, j) << 8;
    const size_t odd = group.odd[4 * row + j] | plane_bit(group.odd_plane, row, j) << 8;
    put_entry(join(kGridIQ3_S.entries[even], kGridIQ3_S.entries[odd]), group.signs[4 * row + j], g,
              j, out);
  }
  put_scales(nibble(group.scales, row), nibble(group.scales, row), g, out);
}

template <class Tile>
void unpack_row(const Tile& tile, size_t row, GridRow& out) {
  for (size_t g = 0; g < kGridGroups; ++g) unpack(tile.groups[g], row, g, out);
}

// Weights in columns of IQ1, from the number of a level and whether its delta is -1.
int8_t shifted_level(unsigned level, bool negative) {
  return static_cast<int8_t>(8 * static_cast<int>(level) - 8 + (negative ? -1 : 1));
}

void unpack_row(const TileIQ1_S& tile, size_t row, GridRow& out) {
  for (size_t column = 0; column < 256; ++column) {
    const TileIQ1_S::Chunk& chunk = tile.chunks[column / 64];
    const size_t in_part = column % 16;
    const unsigned code = chunk.codes[in_part / 4][4 * row + in_part % 4];
    const unsigned scale = unsigned{chunk.scales[row]} >> (4 * (column % 64 / 32)) & 15u;
    out.q[column] = shifted_level(code >> (2 * (column % 64 / 16)) & 3u, (scale & 8u) != 0);
    out.scales[column / 16] = static_cast<int>(2 * (scale & 7u) + 1);
  }
}

void unpack_row(const TileIQ1_M& tile, size_t row, GridRow& out) {
  for (size_t column = 0; column < 256; ++column) {
    const TileIQ1_M::Chunk& chunk = tile.chunks[column % 128 / 32];
    const size_t half = column / 128;
    const size_t pair = column % 32 / 16;
    const size_t in_pair = column % 16;
    const unsigned code = chunk.codes[in_pair / 4][4 * row + in_pair % 4];
    const unsigned scale = unsigned{chunk.scales[pair][row]} >> (4 * half) & 15u;
    const bool late = (chunk.late[pair][half][row / 8] >> (row % 8) & 1) != 0;
    const bool negative = in_pair < 8 ? (scale & 8u) != 0 : late;
    out.q[column] = shifted_level(code >> (2 * pair + 4 * half) & 3u, negative);
    out.scales[column / 16] = static_cast<int>(2 * (scale & 7u) + 1);
  }
}

int scaled_dot(const GridRow& row, const int8_t* q) {
  int sum = 0;
  for (size_t g = 0; g < 16; ++g) {
    int dot = 0;
    for (size_t i = 16 * g; i < 16 * (g + 1); ++i) dot += row.q[i] * q[i];
    sum += row.scales[g] * dot;
  }
  return sum;
}

template <class Tile>
void add_tile(const Tile& tile, const Activations& x, size_t block, size_t n_tokens,
              float (*sums)[kTileRows]) {
  for (size_t r = 0; r < kTileRows; ++r) {
    GridRow row;
    unpack_row(tile, r, row);
    const float d = Tile::kUnit * load_half(tile.d, r);
    for (size_t t = 0; t < n_tokens; ++t) {
      const float dx = x.scales[t * x.scale_stride + block];
      const int dot = scaled_dot(row, x.q + t * x.q_stride + 256 * block);
      sums[t][r] = std::fma(static_cast<float>(dot), d * dx, sums[t][r]);
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

void matvec_iq1_s(const MatVecArgs& args) { run<TileIQ1_S>(args); }
void matvec_iq1_m(const MatVecArgs& args) { run<TileIQ1_M>(args); }
void matvec_iq2_xxs(const MatVecArgs& args) { run<TileIQ2_XXS>(args); }
void matvec_iq2_xs(const MatVecArgs& args) { run<TileIQ2_XS>(args); }
void matvec_iq2_s(const MatVecArgs& args) { run<TileIQ2_S>(args); }
void matvec_iq3_xxs(const MatVecArgs& args) { run<TileIQ3_XXS>(args); }
void matvec_iq3_s(const MatVecArgs& args) { run<TileIQ3_S>(args); }

}  // namespace godwit::cpu::generic
