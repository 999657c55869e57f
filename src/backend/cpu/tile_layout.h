// The packed layouts, one for all instruction sets: tiles of 16 rows by one block of columns, one
// row per dword lane, so that integer dots, scales and sums vectorise over rows and no horizontal
// sum is needed. The tiles of 16 rows follow each other block by block, then the next 16 rows.
// In every [64] array, byte 4 r + k belongs to row r and to the weight w + k of the stated w.
// Members are bytes throughout, so a tile may lie at any address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

// ---- 32 columns. nibbles[j]: bits 3..0 are weights 4 j + k, bits 7..4 weights 16 + 4 j + k.
// high: bit j of a byte is bit 4 of weight 4 j + k (j < 8). scales, mins: binary16 of each row.

// weight = d * (q - 8)
struct TileQ4_0 {
  uint8_t nibbles[4][64];
  uint8_t scales[32];
};

// weight = d * q + m
struct TileQ4_1 {
  uint8_t nibbles[4][64];
  uint8_t scales[32];
  uint8_t mins[32];
};

// weight = d * (q - 16)
struct TileQ5_0 {
  uint8_t nibbles[4][64];
  uint8_t high[64];
  uint8_t scales[32];
};

// weight = d * q + m
struct TileQ5_1 {
  uint8_t nibbles[4][64];
  uint8_t high[64];
  uint8_t scales[32];
  uint8_t mins[32];
};

// weight = d * (q - 128): codes[j] are weights 4 j + k, with the sign bit of the file inverted.
struct TileQ8_0 {
  uint8_t codes[8][64];
  uint8_t scales[32];
};

// ---- 256 columns. A chunk of Q4_K and Q5_K is 64 columns: group 0 its first 32, group 1 the rest.

// weight = d * scale * q - dmin * min
struct TileQ4_K {
  struct Chunk {
    uint8_t nibbles[8][64];  // bits 3..0: weights 4 j + k of group 0, bits 7..4: of group 1
    uint8_t scales[2][16];   // [group][row]
    uint8_t mins[16][2];     // [row][group]
  } chunks[4];
  uint8_t d[32];     // binary16 of each row
  uint8_t dmin[32];  // binary16 of each row
};

struct TileQ5_K {
  struct Chunk {
    uint8_t nibbles[8][64];
    uint8_t high[2][64];  // [group]: bit j of a byte is bit 4 of weight 4 j + k
    uint8_t scales[2][16];
    uint8_t mins[16][2];
  } chunks[4];
  uint8_t d[32];
  uint8_t dmin[32];
};

// weight = d * scale * (q - 32). Chunk c holds columns 16 c (half 0) and 128 + 16 c (half 1).
struct TileQ6_K {
  struct Chunk {
    uint8_t low[4][64];  // bits 3..0: weights 4 j + k of half 0, bits 7..4: of half 1
    // Bits 5..4 of the codes, from bit 0: half 0 of j even, of j odd, half 1 of j even, of j odd;
    // high[j / 2].
    uint8_t high[2][64];
    int8_t scales[16][2];  // [row][half]
  } chunks[8];
  uint8_t d[32];
};

static_assert(sizeof(TileQ4_0) == 16 * 18 && sizeof(TileQ4_1) == 16 * 20);
static_assert(sizeof(TileQ5_0) == 16 * 22 && sizeof(TileQ5_1) == 16 * 24);
static_assert(sizeof(TileQ8_0) == 16 * 34 && sizeof(TileQ6_K) == 16 * 210);
static_assert(sizeof(TileQ4_K) == 16 * 148 && sizeof(TileQ5_K) == 16 * 180);

// ---- Floats: a tile is one column, or, for BF16, a pair of columns (an odd last one is paired
// with zeros), which widens without a shuffle: [row][2] words, column 2 i in the low half.
// F16 and F32: [row].
inline constexpr size_t kTileBytesF32 = 64;
inline constexpr size_t kTileBytesF16 = 32;
inline constexpr size_t kTileBytesBF16Pair = 64;

}  // namespace godwit::cpu
