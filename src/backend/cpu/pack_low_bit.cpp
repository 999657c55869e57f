#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "quant/iq4_nl.h"
#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/q1_0.h"
#include "quant/q2_0.h"

namespace godwit::cpu {
namespace {

void pack_row_iq4_nl(const quant::BlockIQ4_NL& block, size_t row, TileIQ4_NL& tile) {
  for (size_t j = 0; j < 4; ++j) put_dword(tile.nibbles[j], row, get_dword(block.qs, j));
  put_half(tile.scales, row, block.d);
}

void pack_row_mxfp4(const quant::BlockMXFP4& block, size_t row, TileMXFP4& tile) {
  for (size_t j = 0; j < 4; ++j) put_dword(tile.nibbles[j], row, get_dword(block.qs, j));
  tile.exponents[row] = block.e;
}

// The scale as the bits of TileNVFP4: the file's code has a sign bit that means nothing, and one
// code that means zero.
uint8_t nvfp4_scale_bits(uint8_t code) {
  return code == 0x7f ? uint8_t{0} : static_cast<uint8_t>(code & 0x7f);
}

void pack_row_nvfp4(const quant::BlockNVFP4& block, size_t row, TileNVFP4& tile) {
  // A group of 16 columns is two dwords in the file: low nibbles its first eight, high its last.
  for (size_t group = 0; group < 4; ++group) {
    TileNVFP4::Part& part = tile.parts[group / 2];
    const size_t side = group % 2;
    for (size_t j = 0; j < 4; ++j) {
      const uint32_t both = get_dword(block.qs, 2 * group + j % 2);
      const uint32_t codes = (both >> (4 * (j / 2))) & 0x0f0f0f0fu;
      const uint32_t before = side == 0 ? 0 : get_dword(part.nibbles[j], row);
      put_dword(part.nibbles[j], row, before | codes << (4 * side));
    }
    part.scales[side][row] = nvfp4_scale_bits(block.d[group]);
  }
}

// The pairs of bits of a byte, one per byte.
uint32_t spread_pairs(uint32_t byte) {
  byte = (byte | byte << 12) & 0x000f000fu;
  return (byte | byte << 6) & 0x03030303u;
}

// Bits 3..0, one per byte.
uint32_t spread_bits(uint32_t nibble) {
  nibble = (nibble | nibble << 14) & 0x00030003u;
  return (nibble | nibble << 7) & 0x01010101u;
}

void pack_row_q2_0(const quant::BlockQ2_0& block, size_t row, TileQ2_0& tile) {
  for (size_t j = 0; j < 4; ++j) {
    uint32_t codes = 0;
    for (size_t p = 0; p < 4; ++p) codes |= spread_pairs(block.qs[4 * p + j]) << (2 * p);
    put_dword(tile.codes[j], row, codes);
  }
  put_half(tile.scales, row, block.d);
}

void pack_row_q1_0(const quant::BlockQ1_0& block, size_t row, TileQ1_0& tile) {
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t word = get_dword(block.qs, i);
    uint32_t codes = 0;
    for (size_t j = 0; j < 8; ++j) codes |= spread_bits((word >> (4 * j)) & 15) << j;
    put_dword(tile.codes[i], row, codes);
  }
  put_half(tile.scales, row, block.d);
}

}  // namespace

void pack_iq4_nl(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ4_NL, TileIQ4_NL, pack_row_iq4_nl>(src, n_rows, cols, dst);
}
void pack_mxfp4(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockMXFP4, TileMXFP4, pack_row_mxfp4>(src, n_rows, cols, dst);
}
void pack_nvfp4(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockNVFP4, TileNVFP4, pack_row_nvfp4>(src, n_rows, cols, dst);
}
void pack_q1_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ1_0, TileQ1_0, pack_row_q1_0>(src, n_rows, cols, dst);
}
void pack_q2_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ2_0, TileQ2_0, pack_row_q2_0>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
