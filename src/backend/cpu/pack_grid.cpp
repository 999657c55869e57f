#include "backend/cpu/grid_tiles.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "quant/iq2_s.h"
#include "quant/iq2_xs.h"
#include "quant/iq2_xxs.h"
#include "quant/iq3_s.h"
#include "quant/iq3_xxs.h"

namespace godwit::cpu {
namespace {

// Four bits of row `row`: a nibble, or a bit for each of the row's four codes.
void put_nibble(uint8_t (&plane)[8], size_t row, unsigned nibble) {
  plane[row / 2] = static_cast<uint8_t>(plane[row / 2] | (nibble & 15u) << (4 * (row % 2)));
}

// Bit k of each of four fields of `width` bits, as a nibble.
unsigned pick_bits(unsigned fields, unsigned width, unsigned k) {
  unsigned nibble = 0;
  for (unsigned j = 0; j < 4; ++j) nibble |= (fields >> (width * j + k) & 1u) << j;
  return nibble;
}

// Bytes first, first + 2, first + 4 and first + 6 as a dword.
uint32_t every_other_byte(const uint8_t* bytes, size_t first) {
  uint32_t dword = 0;
  for (size_t j = 0; j < 4; ++j) dword |= uint32_t{bytes[first + 2 * j]} << (8 * j);
  return dword;
}

// The scales of a group's two halves, from nibbles in the order of the columns.
void put_scales(uint8_t (&scales)[2][8], size_t row, uint8_t pair) {
  put_nibble(scales[0], row, pair & 15u);
  put_nibble(scales[1], row, pair >> 4);
}

void pack_row_iq2_xxs(const quant::BlockIQ2_XXS& block, size_t row, TileIQ2_XXS& tile) {
  for (size_t g = 0; g < kGridGroups; ++g) {
    put_dword(tile.groups[g].codes, row, get_dword(block.qs, 2 * g));
    put_dword(tile.groups[g].words, row, get_dword(block.qs, 2 * g + 1));
  }
  put_half(tile.d, row, block.d);
}

void pack_row_iq3_xxs(const quant::BlockIQ3_XXS& block, size_t row, TileIQ3_XXS& tile) {
  for (size_t g = 0; g < kGridGroups; ++g) {
    put_dword(tile.groups[g].even, row, every_other_byte(block.qs, 8 * g));
    put_dword(tile.groups[g].odd, row, every_other_byte(block.qs, 8 * g + 1));
    put_dword(tile.groups[g].words, row, get_dword(block.signs_scales, g));
  }
  put_half(tile.d, row, block.d);
}

void pack_row_iq2_xs(const quant::BlockIQ2_XS& block, size_t row, TileIQ2_XS& tile) {
  for (size_t g = 0; g < kGridGroups; ++g) {
    uint8_t bytes[8];
    std::memcpy(bytes, block.qs + 4 * g, sizeof(bytes));
    put_dword(tile.groups[g].codes, row, every_other_byte(bytes, 0));
    put_dword(tile.groups[g].high, row, every_other_byte(bytes, 1));
    put_scales(tile.groups[g].scales, row, block.scales[g]);
  }
  put_half(tile.d, row, block.d);
}

void pack_row_iq2_s(const quant::BlockIQ2_S& block, size_t row, TileIQ2_S& tile) {
  for (size_t g = 0; g < kGridGroups; ++g) {
    TileIQ2_S::Group& group = tile.groups[g];
    put_dword(group.codes, row, get_dword(block.qs, g));
    put_dword(group.signs, row, get_dword(block.signs, g));
    for (unsigned k = 0; k < 2; ++k) put_nibble(group.planes[k], row, pick_bits(block.qh[g], 2, k));
    put_scales(group.scales, row, block.scales[g]);
  }
  put_half(tile.d, row, block.d);
}

void pack_row_iq3_s(const quant::BlockIQ3_S& block, size_t row, TileIQ3_S& tile) {
  for (size_t g = 0; g < kGridGroups; ++g) {
    TileIQ3_S::Group& group = tile.groups[g];
    put_dword(group.even, row, every_other_byte(block.qs, 8 * g));
    put_dword(group.odd, row, every_other_byte(block.qs, 8 * g + 1));
    put_dword(group.signs, row, get_dword(block.signs, g));
    put_nibble(group.even_plane, row, pick_bits(block.qh[g], 2, 0));
    put_nibble(group.odd_plane, row, pick_bits(block.qh[g], 2, 1));
    put_nibble(group.scales, row, uint32_t{block.scales[g / 2]} >> (4 * (g % 2)));
  }
  put_half(tile.d, row, block.d);
}

}  // namespace

void pack_iq2_xxs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ2_XXS, TileIQ2_XXS, pack_row_iq2_xxs>(src, n_rows, cols, dst);
}
void pack_iq2_xs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ2_XS, TileIQ2_XS, pack_row_iq2_xs>(src, n_rows, cols, dst);
}
void pack_iq2_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ2_S, TileIQ2_S, pack_row_iq2_s>(src, n_rows, cols, dst);
}
void pack_iq3_xxs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ3_XXS, TileIQ3_XXS, pack_row_iq3_xxs>(src, n_rows, cols, dst);
}
void pack_iq3_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ3_S, TileIQ3_S, pack_row_iq3_s>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
