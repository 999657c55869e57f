#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "backend/cpu/tile_layout.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"

namespace godwit::cpu {
namespace {

// Bit 4 j + k of `bits` goes to bit 8 k + j: from the file's order to one byte per k.
uint32_t gather_high_bits(uint32_t bits) {
  uint32_t out = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    uint32_t b = (bits >> k) & 0x11111111u;
    b = (b | b >> 3) & 0x03030303u;
    b = (b | b >> 6) & 0x000f000fu;
    b = (b | b >> 12) & 0xffu;
    out |= b << (8 * k);
  }
  return out;
}

template <class Block, class Tile>
void pack_nibbles(const Block& block, size_t row, Tile& tile) {
  for (size_t j = 0; j < 4; ++j) put_dword(tile.nibbles[j], row, get_dword(block.qs, j));
  put_half(tile.scales, row, block.d);
}

void pack_row_q4_0(const quant::BlockQ4_0& block, size_t row, TileQ4_0& tile) {
  pack_nibbles(block, row, tile);
}

void pack_row_q4_1(const quant::BlockQ4_1& block, size_t row, TileQ4_1& tile) {
  pack_nibbles(block, row, tile);
  put_half(tile.mins, row, block.m);
}

void pack_row_q5_0(const quant::BlockQ5_0& block, size_t row, TileQ5_0& tile) {
  pack_nibbles(block, row, tile);
  put_dword(tile.high, row, gather_high_bits(get_dword(block.qh, 0)));
}

void pack_row_q5_1(const quant::BlockQ5_1& block, size_t row, TileQ5_1& tile) {
  pack_nibbles(block, row, tile);
  put_dword(tile.high, row, gather_high_bits(get_dword(block.qh, 0)));
  put_half(tile.mins, row, block.m);
}

void pack_row_q8_0(const quant::BlockQ8_0& block, size_t row, TileQ8_0& tile) {
  for (size_t j = 0; j < 8; ++j) {
    put_dword(tile.codes[j], row, get_dword(block.qs, j) ^ 0x80808080u);
  }
  put_half(tile.scales, row, block.d);
}

}  // namespace

void pack_q4_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ4_0, TileQ4_0, pack_row_q4_0>(src, n_rows, cols, dst);
}
void pack_q4_1(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ4_1, TileQ4_1, pack_row_q4_1>(src, n_rows, cols, dst);
}
void pack_q5_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ5_0, TileQ5_0, pack_row_q5_0>(src, n_rows, cols, dst);
}
void pack_q5_1(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ5_1, TileQ5_1, pack_row_q5_1>(src, n_rows, cols, dst);
}
void pack_q8_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ8_0, TileQ8_0, pack_row_q8_0>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
