// The loops around one tile that the generic block kernels share: rows in tiles of 16, tokens in
// groups, blocks in order. Obvious rather than quick.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matvec_args.h"
#include "base/half.h"

namespace godwit::cpu::generic {

// Half number `index` of a byte array, widened.
[[nodiscard]] inline float load_half(const uint8_t* halves, size_t index) {
  uint16_t half = 0;
  std::memcpy(&half, halves + 2 * index, 2);
  return f16_to_f32(half);
}

// `x` from token `first` on.
[[nodiscard]] inline Activations from_token(const Activations& x, size_t first) {
  Activations rest = x;
  if (rest.f32 != nullptr) rest.f32 += first * x.f32_stride;
  if (rest.q != nullptr) rest.q += first * x.q_stride;
  if (rest.scales != nullptr) rest.scales += first * x.scale_stride;
  if (rest.sums != nullptr) rest.sums += first * x.sum_stride;
  return rest;
}

// Calls add_tile(tile, x, block, n_tokens, sums) for every tile, where sums is [n_tokens][16], x
// begins with the first of these tokens, and stores the sums of the rows that exist.
template <class Tile, size_t kBlock, class AddTile>
void run_tiles(const MatVecArgs& args, AddTile add_tile) {
  constexpr size_t kGroup = 8;  // tokens for which a tile is unpacked once
  const size_t n_blocks = args.cols / kBlock;
  for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
    const std::byte* tiles = args.weights + row / kTileRows * n_blocks * sizeof(Tile);
    const size_t present = std::min(kTileRows, args.row_end - row);
    for (size_t first = 0; first < args.n_tokens; first += kGroup) {
      const size_t n_tokens = std::min(kGroup, args.n_tokens - first);
      const Activations x = from_token(args.x, first);
      float sums[kGroup][kTileRows] = {};
      for (size_t b = 0; b < n_blocks; ++b) {
        Tile tile;
        std::memcpy(&tile, tiles + b * sizeof(Tile), sizeof(Tile));
        add_tile(tile, x, b, n_tokens, sums);
      }
      for (size_t t = 0; t < n_tokens; ++t) {
        std::memcpy(args.y + (first + t) * args.y_stride + row, sums[t], present * sizeof(float));
      }
    }
  }
}

}  // namespace godwit::cpu::generic
