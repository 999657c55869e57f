// The packed layouts (see tile_layout.h) of types with fewer bits than Q4_0 and Q4_K, and of those
// whose four bits are numbers of table entries. Bytes as there: in every [64] array byte 4 r + k
// belongs to row r and to the weight w + k of the stated w.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

// ---- 32 columns: nibbles as in TileQ4_0.

// weight = d * table[q], see kIq4Values.
struct TileIQ4_NL {
  static constexpr size_t kColumns = 32;
  uint8_t nibbles[4][64];
  uint8_t scales[32];  // binary16 of each row
};

// weight = 2^(e - 128) * table[q], see kFp4Values.
struct TileMXFP4 {
  static constexpr size_t kColumns = 32;
  uint8_t nibbles[4][64];
  uint8_t exponents[16];  // of each row
};

// ---- 64 columns.

// weight = scale * table[q], see kFp4Values. A part is 32 columns, a scale belongs to 16 of them.
struct TileNVFP4 {
  static constexpr size_t kColumns = 64;
  struct Part {
    uint8_t nibbles[4][64];
    // [half of the columns][row]: bits 14..7 of a binary16 that is 1/128 of the scale.
    uint8_t scales[2][16];
  } parts[2];
};

// weight = d * (q - 1). Bits 2 p + 1..2 p of codes[j] are weights 16 p + 4 j + k.
struct TileQ2_0 {
  static constexpr size_t kColumns = 64;
  uint8_t codes[4][64];
  uint8_t scales[32];
};

// ---- 128 columns.

// weight = d * (2 q - 1). Bit j of codes[i] is weight 32 i + 4 j + k.
struct TileQ1_0 {
  static constexpr size_t kColumns = 128;
  uint8_t codes[4][64];
  uint8_t scales[32];
};

// ---- 256 columns.

// weight = d * scale * table[q], see kIq4Values. A chunk is 64 columns.
struct TileIQ4_XS {
  struct Chunk {
    uint8_t nibbles[8][64];  // bits 3..0: weights 4 j + k, bits 7..4: weights 32 + 4 j + k
    int8_t scales[16][2];    // [row][half of the columns]
  } chunks[4];
  uint8_t d[32];
};

// weight = d * (q - 1), of TQ1_0 too: two bits for each of its ternary digits. A chunk is 64
// columns: bits 2 p + 1..2 p of codes[j] are weights 16 p + 4 j + k.
struct TileTQ2_0 {
  struct Chunk {
    uint8_t codes[4][64];
  } chunks[4];
  uint8_t d[32];
};

// Chunk c of Q2_K and Q3_K holds columns 32 c.. (half 0) and 128 + 32 c.. (half 1), 32 of each,
// in two pairs of 16: pair p is columns 16 p.. of both halves. codes[j]: bits 2 p + 1..2 p are
// weights 16 p + 4 j + k of half 0, bits 2 p + 5..2 p + 4 those of half 1.

// weight = d * scale * q - dmin * min
struct TileQ2_K {
  struct Chunk {
    uint8_t codes[4][64];
    uint8_t scales[2][16][2];  // [pair][row][half]: bits 3..0 the scale, bits 7..4 the minimum
  } chunks[4];
  uint8_t d[32];
  uint8_t dmin[32];
};

// weight = d * scale * (q - 4)
struct TileQ3_K {
  struct Chunk {
    uint8_t codes[4][64];     // bits 1..0 of q
    uint8_t high[2][64];      // [pair]: bit j + 4 half is bit 2 of weight 16 p + 4 j + k
    int8_t scales[2][16][2];  // [pair][row][half]
  } chunks[4];
  uint8_t d[32];
};

// IQ1_S and IQ1_M: weight = kUnit * d * (2 s + 1) * (8 level + delta - 8), level 0, 1 or 2, delta 1
// or -1. Two bits for each level instead of a number of an entry of 2,048, which no instruction set
// looks up as fast as memory delivers: 40 and 36 % more bytes than in the file.

// A chunk is 64 columns, of which group 0 is the first 32: codes as in TileTQ2_0.
struct TileIQ1_S {
  static constexpr float kUnit = 0.125f;
  struct Chunk {
    uint8_t codes[4][64];
    uint8_t scales[16];  // [row]: bits 2..0 s of group 0, bit 3 set where its delta is -1; 7..4: 1
  } chunks[4];
  uint8_t d[32];
};

// Chunks, halves and pairs of columns as for Q2_K; a delta for every eight columns.
struct TileIQ1_M {
  static constexpr float kUnit = 0.125f;
  struct Chunk {
    uint8_t codes[4][64];
    // [pair][row]: bits 2..0 s of half 0, bit 3 set where the delta of its first eight columns is
    // -1; bits 7..4 those of half 1.
    uint8_t scales[2][16];
    uint8_t late[2][2][2];  // [pair][half]: bit `row` set where that of the last eight is -1
  } chunks[4];
  uint8_t d[32];
};

static_assert(sizeof(TileIQ4_NL) == 16 * 18 && sizeof(TileMXFP4) == 16 * 17);
static_assert(sizeof(TileNVFP4) == 16 * 36 && sizeof(TileQ2_0) == 16 * 18);
static_assert(sizeof(TileQ1_0) == 16 * 18 && sizeof(TileIQ4_XS) == 16 * 138);
static_assert(sizeof(TileTQ2_0) == 16 * 66 && sizeof(TileQ2_K) == 16 * 84);
static_assert(sizeof(TileQ3_K) == 16 * 114 && sizeof(TileIQ1_S) == 16 * 70);
static_assert(sizeof(TileIQ1_M) == 16 * 76);

}  // namespace godwit::cpu
