// The codebooks as the kernels read them: an entry is 8 (or 4) weights as bytes, the first in the
// lowest, to be loaded as one word. Declared only, so that files compiled for one instruction set
// hold no copy of them; grid_tables.cpp makes them from the codebooks of quant/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

template <class Word, size_t kEntries>
struct GridTable {
  alignas(64) Word entries[kEntries];
};

// Magnitudes, none of them 0.
extern const GridTable<uint64_t, 256> kGridIQ2_XXS;
extern const GridTable<uint64_t, 512> kGridIQ2_XS;
extern const GridTable<uint64_t, 1024> kGridIQ2_S;
extern const GridTable<uint32_t, 256> kGridIQ3_XXS;
extern const GridTable<uint32_t, 512> kGridIQ3_S;

// The same for kernels that read 64 bytes at a time by byte permutes: they first turn codes into
// numbers of levels, of which there are few, then these, each with its sign, into values.

// Of entry c: weights 0..3 at two bits each in low[c], 4..7 in high[c]; for entries of 4 weights
// 0 and 1 at three bits each in low[c], 2 and 3 in high[c].
template <size_t kEntries>
struct LevelTable {
  alignas(64) uint8_t low[kEntries];
  alignas(64) uint8_t high[kEntries];
};
extern const LevelTable<256> kLevelsIQ2_XXS;
extern const LevelTable<512> kLevelsIQ2_XS;
extern const LevelTable<1024> kLevelsIQ2_S;
extern const LevelTable<256> kLevelsIQ3_XXS;
extern const LevelTable<512> kLevelsIQ3_S;

// 64 + weight by a 6-bit index made of a level and a sign. A table knows its place of the level,
// shift(t) bits up, and its place of the sign, bit sign(t).
template <size_t kTables>
struct ValueTables {
  alignas(64) uint8_t values[kTables][64];
};
// Levels of two bits: shifts 0, 2, 2, 4, signs 4, 5, 0, 1.
extern const ValueTables<4> kValuesIQ2;
// Levels of three bits: shifts 0, 3, 0, 3, 0, 3, signs 3, 0, 4, 1, 5, 2.
extern const ValueTables<6> kValuesIQ3_XXS;
extern const ValueTables<6> kValuesIQ3_S;

}  // namespace godwit::cpu
