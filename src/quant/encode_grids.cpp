// IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S: what encode_grid.h finds, packed. Importance as if an
// importance matrix of ones were given.
#include <cstring>
#include <iterator>

#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/encode_grid.h"
#include "quant/grids.h"
#include "quant/iq2_s.h"
#include "quant/iq2_xs.h"
#include "quant/iq2_xxs.h"
#include "quant/iq3_s.h"
#include "quant/iq3_xxs.h"

namespace godwit::quant {
namespace {

using Weights256 = std::span<const float, 256>;

// The codebook of a type in the order that GridPoints wants, made on first use.
template <const auto& (*grid_of)()>
GridPoints points_of() {
  const auto& grid = grid_of();
  static const std::vector<float> kLevels = levels_by_coordinate(grid);
  return {.levels = kLevels.data(),
          .n_points = std::size(grid.points),
          .n_weights = std::size(grid.points[0])};
}

// Four codes of seven signs and the scale.
void pack_sign_word(const GridBlock& found, size_t group, uint8_t* out) {
  uint32_t word = uint32_t{found.scales[group]} << 28;
  for (size_t j = 0; j < 4; ++j) word |= (found.signs[4 * group + j] & 0x7fu) << (7 * j);
  for (size_t i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(word >> (8 * i));
}

void pack_scales(const GridBlock& found, std::span<uint8_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<uint8_t>(found.scales[2 * i] | found.scales[2 * i + 1] << 4);
  }
}

BlockIQ2_XXS pack_iq2_xxs(const GridBlock& found) {
  BlockIQ2_XXS block{};
  block.d = found.d.bits;
  for (size_t group = 0; group < 8; ++group) {
    uint8_t* qs = block.qs + 8 * group;
    for (size_t j = 0; j < 4; ++j) qs[j] = static_cast<uint8_t>(found.points[4 * group + j]);
    pack_sign_word(found, group, qs + 4);
  }
  return block;
}

BlockIQ2_XS pack_iq2_xs(const GridBlock& found) {
  BlockIQ2_XS block{};
  block.d = found.d.bits;
  for (size_t j = 0; j < 32; ++j) {
    block.qs[j] = static_cast<uint16_t>(found.points[j] | (found.signs[j] & 0x7f) << 9);
  }
  pack_scales(found, block.scales);
  return block;
}

BlockIQ2_S pack_iq2_s(const GridBlock& found) {
  BlockIQ2_S block{};
  block.d = found.d.bits;
  for (size_t j = 0; j < 32; ++j) {
    block.qs[j] = static_cast<uint8_t>(found.points[j]);
    block.signs[j] = found.signs[j];
    uint8_t& high = block.qh[j / 4];
    high = static_cast<uint8_t>(high | (found.points[j] >> 8) << (2 * (j % 4)));
  }
  pack_scales(found, block.scales);
  return block;
}

BlockIQ3_XXS pack_iq3_xxs(const GridBlock& found) {
  BlockIQ3_XXS block{};
  block.d = found.d.bits;
  for (size_t j = 0; j < 64; ++j) block.qs[j] = static_cast<uint8_t>(found.points[j]);
  for (size_t group = 0; group < 8; ++group) {
    pack_sign_word(found, group, block.signs_scales + 4 * group);
  }
  return block;
}

BlockIQ3_S pack_iq3_s(const GridBlock& found) {
  BlockIQ3_S block{};
  block.d = found.d.bits;
  for (size_t j = 0; j < 64; ++j) {
    block.qs[j] = static_cast<uint8_t>(found.points[j]);
    uint8_t& high = block.qh[j / 8];
    high = static_cast<uint8_t>(high | (found.points[j] >> 8) << (j % 8));
  }
  std::memcpy(block.signs, found.signs.data(), sizeof(block.signs));
  pack_scales(found, block.scales);
  return block;
}

template <class Block>
void encode_grid(const GridSpec& spec, Block (*pack)(const GridBlock&),
                 std::span<const float> weights, std::span<std::byte> out) {
  GridSearch search(spec);
  encode_blocks<Block>(weights, out, [&](Weights256 x) { return pack(search.encode(x)); });
}

}  // namespace

void encode_iq2_xxs(std::span<const float> weights, std::span<std::byte> out) {
  encode_grid({.grid = points_of<iq2_xxs_grid>(),
               .lowest_level = kIq2Levels.values[0],
               .highest_level = kIq2Levels.values[2],
               .group_weights = 32,
               .unit = 0.125f,
               .signs = GridSigns::kEven,
               .importance_floor = 1},
              pack_iq2_xxs, weights, out);
}

void encode_iq2_xs(std::span<const float> weights, std::span<std::byte> out) {
  encode_grid({.grid = points_of<iq2_xs_grid>(),
               .lowest_level = kIq2Levels.values[0],
               .highest_level = kIq2Levels.values[2],
               .group_weights = 16,
               .unit = 0.125f,
               .signs = GridSigns::kEven,
               .importance_floor = 1},
              pack_iq2_xs, weights, out);
}

void encode_iq2_s(std::span<const float> weights, std::span<std::byte> out) {
  encode_grid({.grid = points_of<iq2_s_grid>(),
               .lowest_level = kIq2Levels.values[0],
               .highest_level = kIq2Levels.values[2],
               .group_weights = 16,
               .unit = 0.125f,
               .signs = GridSigns::kFree,
               .importance_floor = 2},
              pack_iq2_s, weights, out);
}

void encode_iq3_xxs(std::span<const float> weights, std::span<std::byte> out) {
  encode_grid({.grid = points_of<iq3_xxs_grid>(),
               .lowest_level = kIq3XxsLevels.values[0],
               .highest_level = kIq3XxsLevels.values[7],
               .group_weights = 32,
               .unit = 0.25f,
               .signs = GridSigns::kEven,
               .importance_floor = 2},
              pack_iq3_xxs, weights, out);
}

void encode_iq3_s(std::span<const float> weights, std::span<std::byte> out) {
  encode_grid({.grid = points_of<iq3_s_grid>(),
               .lowest_level = kIq3SLevels.values[0],
               .highest_level = kIq3SLevels.values[7],
               .group_weights = 32,
               .unit = 1.0f,
               .signs = GridSigns::kFree,
               .importance_floor = 2},
              pack_iq3_s, weights, out);
}

}  // namespace godwit::quant
