// The loop that all block packers share: for each tile of 16 rows and each block of columns, the
// blocks of the rows present go through `pack_row`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matvec_args.h"
#include "quant/block.h"

namespace godwit::cpu {

// Puts four bytes of row `row` into a [64] array of a tile.
inline void put_dword(uint8_t* array, size_t row, uint32_t dword) {
  std::memcpy(array + 4 * row, &dword, 4);
}

[[nodiscard]] inline uint32_t get_dword(const void* bytes, size_t index) {
  uint32_t dword = 0;
  std::memcpy(&dword, static_cast<const uint8_t*>(bytes) + 4 * index, 4);
  return dword;
}

inline void put_half(uint8_t* array, size_t row, uint16_t half) {
  std::memcpy(array + 2 * row, &half, 2);
}

template <class Block, class Tile, void (*pack_row)(const Block& block, size_t row, Tile& tile)>
void pack_tiles(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  const size_t n_blocks = cols / static_cast<size_t>(Block::kWeights);
  const size_t row_bytes = n_blocks * sizeof(Block);
  for (size_t row = 0; row < n_rows; row += kTileRows) {
    const size_t present = std::min(kTileRows, n_rows - row);
    for (size_t b = 0; b < n_blocks; ++b, dst += sizeof(Tile)) {
      Tile tile{};
      for (size_t r = 0; r < present; ++r) {
        const std::byte* block = src + (row + r) * row_bytes + b * sizeof(Block);
        pack_row(quant::load_block<Block>(block), r, tile);
      }
      std::memcpy(dst, &tile, sizeof(Tile));
    }
  }
}

}  // namespace godwit::cpu
