#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "backend/cpu/tile_layout.h"
#include "quant/k_scales.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

namespace godwit::cpu {
namespace {

// What Q4_K and Q5_K share: nibbles, scales and minima.
template <class Block, class Tile>
void pack_k_groups(const Block& block, size_t row, Tile& tile) {
  for (size_t c = 0; c < 4; ++c) {
    auto& chunk = tile.chunks[c];
    for (size_t j = 0; j < 8; ++j) put_dword(chunk.nibbles[j], row, get_dword(block.qs, 8 * c + j));
    for (size_t g = 0; g < 2; ++g) {
      const quant::KScaleMin k = quant::unpack_k_scale(block.scales, static_cast<int>(2 * c + g));
      chunk.scales[g][row] = k.scale;
      chunk.mins[row][g] = k.min;
    }
  }
  put_half(tile.d, row, block.d);
  put_half(tile.dmin, row, block.dmin);
}

void pack_row_q4_k(const quant::BlockQ4_K& block, size_t row, TileQ4_K& tile) {
  pack_k_groups(block, row, tile);
}

void pack_row_q5_k(const quant::BlockQ5_K& block, size_t row, TileQ5_K& tile) {
  pack_k_groups(block, row, tile);
  for (size_t group = 0; group < 8; ++group) {
    uint32_t high = 0;
    for (size_t j = 0; j < 8; ++j) {
      high |= ((get_dword(block.qh, j) >> group) & 0x01010101u) << j;
    }
    put_dword(tile.chunks[group / 2].high[group % 2], row, high);
  }
}

// Four weights of a Q6_K block from column `w`: their low four bits and their high two bits.
struct SixBits {
  uint32_t low;   // one code's bits 3..0 per byte
  uint32_t high;  // one code's bits 5..4 per byte, in bits 1..0
};

SixBits get_six_bits(const quant::BlockQ6_K& block, size_t w) {
  const size_t half = w / 128;
  const size_t quarter = w % 128 / 32;
  const size_t i = w % 32;
  const uint32_t ql = get_dword(block.ql, (64 * half + 32 * (quarter % 2) + i) / 4);
  const uint32_t qh = get_dword(block.qh, (32 * half + i) / 4);
  return {(ql >> (4 * (quarter / 2))) & 0x0f0f0f0fu, (qh >> (2 * quarter)) & 0x03030303u};
}

void pack_row_q6_k(const quant::BlockQ6_K& block, size_t row, TileQ6_K& tile) {
  for (size_t c = 0; c < 8; ++c) {
    auto& chunk = tile.chunks[c];
    uint32_t high[2] = {0, 0};
    for (size_t j = 0; j < 4; ++j) {
      const SixBits first = get_six_bits(block, 16 * c + 4 * j);
      const SixBits second = get_six_bits(block, 128 + 16 * c + 4 * j);
      put_dword(chunk.low[j], row, first.low | second.low << 4);
      high[j / 2] |= (first.high | second.high << 4) << (2 * (j % 2));
    }
    for (size_t k = 0; k < 2; ++k) put_dword(chunk.high[k], row, high[k]);
    chunk.scales[row][0] = block.scales[c];
    chunk.scales[row][1] = block.scales[8 + c];
  }
  put_half(tile.d, row, block.d);
}

}  // namespace

void pack_q4_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ4_K, TileQ4_K, pack_row_q4_k>(src, n_rows, cols, dst);
}
void pack_q5_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ5_K, TileQ5_K, pack_row_q5_k>(src, n_rows, cols, dst);
}
void pack_q6_k(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockQ6_K, TileQ6_K, pack_row_q6_k>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
