#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "quant/iq4_xs.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/tq1_0.h"
#include "quant/tq2_0.h"

namespace godwit::cpu {
namespace {

void pack_row_iq4_xs(const quant::BlockIQ4_XS& block, size_t row, TileIQ4_XS& tile) {
  // 32 columns in the file: low nibbles the first 16, high nibbles the last.
  for (size_t c = 0; c < 4; ++c) {
    auto& chunk = tile.chunks[c];
    for (size_t j = 0; j < 8; ++j) {
      const size_t shift = 4 * (j / 4);
      const uint32_t first = get_dword(block.qs, 8 * c + j % 4) >> shift;
      const uint32_t second = get_dword(block.qs, 8 * c + 4 + j % 4) >> shift;
      put_dword(chunk.nibbles[j], row, (first & 0x0f0f0f0fu) | (second & 0x0f0f0f0fu) << 4);
    }
    for (size_t side = 0; side < 2; ++side) {
      const int scale = quant::iq4_xs_scale(block, static_cast<int>(2 * c + side));
      chunk.scales[row][side] = static_cast<int8_t>(scale);
    }
  }
  put_half(tile.d, row, block.d);
}

// Four codes of two bits from column `w` of the planes of Q2_K, Q3_K and TQ2_0, one per byte.
uint32_t get_pairs(const uint8_t* planes, size_t w) {
  return (get_dword(planes, (32 * (w / 128) + w % 32) / 4) >> (2 * (w % 128 / 32))) & 0x03030303u;
}

// The codes of Q2_K and Q3_K: see low_bit_tiles.h.
template <class Tile>
void pack_k_pairs(const uint8_t* planes, size_t row, Tile& tile) {
  for (size_t c = 0; c < 4; ++c) {
    for (size_t j = 0; j < 4; ++j) {
      const size_t w = 32 * c + 4 * j;
      put_dword(tile.chunks[c].codes[j], row,
                get_pairs(planes, w) | get_pairs(planes, w + 16) << 2 |
                    get_pairs(planes, w + 128) << 4 | get_pairs(planes, w + 144) << 6);
    }
  }
}

void pack_row_q2_k(const quant::BlockQ2_K& block, size_t row, TileQ2_K& tile) {
  pack_k_pairs(block.qs, row, tile);
  for (size_t g = 0; g < 16; ++g) {
    tile.chunks[g % 8 / 2].scales[g % 2][row][g / 8] = block.scales[g];
  }
  put_half(tile.d, row, block.d);
  put_half(tile.dmin, row, block.dmin);
}

void pack_row_q3_k(const quant::BlockQ3_K& block, size_t row, TileQ3_K& tile) {
  pack_k_pairs(block.qs, row, tile);
  for (size_t g = 0; g < 16; ++g) {
    const int scale = quant::q3_k_scale(block.scales, static_cast<int>(g));
    tile.chunks[g % 8 / 2].scales[g % 2][row][g / 8] = static_cast<int8_t>(scale);
  }
  for (size_t c = 0; c < 4; ++c) {
    for (size_t pair = 0; pair < 2; ++pair) {
      uint32_t high = 0;
      for (size_t j = 0; j < 4; ++j) {
        // In the file a bit of a byte is a plane of 32 columns.
        const uint32_t planes = get_dword(block.qh, 4 * pair + j);
        high |= ((planes >> c) & 0x01010101u) << j;
        high |= ((planes >> (4 + c)) & 0x01010101u) << (4 + j);
      }
      put_dword(tile.chunks[c].high[pair], row, high);
    }
  }
  put_half(tile.d, row, block.d);
}

void pack_row_tq2_0(const quant::BlockTQ2_0& block, size_t row, TileTQ2_0& tile) {
  for (size_t c = 0; c < 4; ++c) {
    for (size_t j = 0; j < 4; ++j) {
      uint32_t codes = 0;
      for (size_t p = 0; p < 4; ++p) {
        codes |= get_pairs(block.qs, 64 * c + 16 * p + 4 * j) << (2 * p);
      }
      put_dword(tile.chunks[c].codes[j], row, codes);
    }
  }
  put_half(tile.d, row, block.d);
}

// Four digits of TQ1_0 from column `w`, one per byte.
uint32_t get_digits(const quant::BlockTQ1_0& block, size_t w) {
  const uint8_t* bytes = block.qs;
  size_t width = 32;
  size_t i = w;
  if (w >= 240) {
    bytes = block.qh;
    width = 4;
    i = w - 240;
  } else if (w >= 160) {
    bytes = block.qs + 32;
    width = 16;
    i = w - 160;
  }
  uint32_t digits = 0;
  for (size_t k = 0; k < 4; ++k) {
    const int digit = quant::ternary_digit(bytes[i % width + k], static_cast<int>(i / width));
    digits |= static_cast<uint32_t>(digit) << (8 * k);
  }
  return digits;
}

void pack_row_tq1_0(const quant::BlockTQ1_0& block, size_t row, TileTQ2_0& tile) {
  for (size_t c = 0; c < 4; ++c) {
    for (size_t j = 0; j < 4; ++j) {
      uint32_t codes = 0;
      for (size_t p = 0; p < 4; ++p) {
        codes |= get_digits(block, 64 * c + 16 * p + 4 * j) << (2 * p);
      }
      put_dword(tile.chunks[c].codes[j], row, codes);
    }
  }
  put_half(tile.d, row, block.d);
}

}  // namespace

void pack_q2_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ2_K, TileQ2_K, pack_row_q2_k>(src, n_rows, cols, dst);
}
void pack_q3_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ3_K, TileQ3_K, pack_row_q3_k>(src, n_rows, cols, dst);
}
void pack_iq4_xs(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ4_XS, TileIQ4_XS, pack_row_iq4_xs>(src, n_rows, cols, dst);
}
void pack_tq1_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockTQ1_0, TileTQ2_0, pack_row_tq1_0>(src, n_rows, cols, dst);
}
void pack_tq2_0(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockTQ2_0, TileTQ2_0, pack_row_tq2_0>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
