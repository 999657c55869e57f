// The packed layouts of the types whose weights come from a codebook, one for all instruction sets:
// tiles of 16 rows by 256 columns, eight groups of 32 columns each, tiles in the order of
// tile_layout.h. A row is a dword lane again: codes, signs and scales vectorise over rows, whether
// the codebook is then read by byte permutes or entry by entry. As many bytes as in the file. IQ1_S
// and IQ1_M are in low_bit_tiles.h: their codebook is looked up once, by the packing.
//
// In a group, code j is the index of the codebook entry of weights 8 j .. 8 j + 7. In every [64]
// array byte 4 r + j belongs to row r and code j; a plane [8] is one word of 64 bits, lowest byte
// first, that holds one bit for each of these; a nibbles [8] is one too, bits 4 r + 3 .. 4 r for
// row r. d is the binary16 of each row. Members are bytes throughout: a tile may lie at any
// address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

inline constexpr size_t kGridGroups = 8;

// weight = kUnit * d * (2 s + 1) * sign * entry. words: four times seven signs, bits 7 j + 6 .. 7 j
// for weights 8 j .. 8 j + 6; the eighth makes their number even; bits 31..28 s.
struct TileIQ2_XXS {
  static constexpr float kUnit = 0.125f;
  struct Group {
    uint8_t codes[64];
    uint8_t words[64];
  } groups[kGridGroups];
  uint8_t d[32];
};

// even: entries of weights 8 j .. 8 j + 3, odd: of weights 8 j + 4 .. 8 j + 7. words as above.
struct TileIQ3_XXS {
  static constexpr float kUnit = 0.25f;
  struct Group {
    uint8_t even[64];
    uint8_t odd[64];
    uint8_t words[64];
  } groups[kGridGroups];
  uint8_t d[32];
};

// high: bit 0 is bit 8 of the code, bits 7..1 the first seven signs, the eighth as above.
// scales[h]: s of the group's columns 16 h .. 16 h + 15.
struct TileIQ2_XS {
  static constexpr float kUnit = 0.125f;
  struct Group {
    uint8_t codes[64];
    uint8_t high[64];
    uint8_t scales[2][8];
  } groups[kGridGroups];
  uint8_t d[32];
};

// signs: bit i is set where weight 8 j + i is negative. planes[k]: bit 8 + k of the code.
struct TileIQ2_S {
  static constexpr float kUnit = 0.125f;
  struct Group {
    uint8_t codes[64];
    uint8_t signs[64];
    uint8_t planes[2][8];
    uint8_t scales[2][8];
  } groups[kGridGroups];
  uint8_t d[32];
};

struct TileIQ3_S {
  static constexpr float kUnit = 1.0f;
  struct Group {
    uint8_t even[64];
    uint8_t odd[64];
    uint8_t signs[64];
    uint8_t even_plane[8];  // bit 8 of the even codes
    uint8_t odd_plane[8];
    uint8_t scales[8];
  } groups[kGridGroups];
  uint8_t d[32];
};

static_assert(sizeof(TileIQ2_XXS) == 16 * 66 && sizeof(TileIQ3_XXS) == 16 * 98);
static_assert(sizeof(TileIQ2_XS) == 16 * 74 && sizeof(TileIQ2_S) == 16 * 82);
static_assert(sizeof(TileIQ3_S) == 16 * 110);

}  // namespace godwit::cpu
