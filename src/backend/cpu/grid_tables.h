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
// IQ1_S and IQ1_M: eight times the signed entry, -8, 0 or 8; a delta of 1 or -1 comes on top.
extern const GridTable<uint64_t, 2048> kGridIQ1;

}  // namespace godwit::cpu
