#include "backend/cpu/grid_tables.h"

#include "quant/grids.h"

namespace godwit::cpu {
namespace {

// The bytes of each point, times `factor`, as one word.
template <class Word, size_t N>
constexpr GridTable<Word, N> as_words(const quant::Grid<N, sizeof(Word)>& grid, int factor) {
  GridTable<Word, N> table{};
  for (size_t point = 0; point < N; ++point) {
    for (size_t i = 0; i < sizeof(Word); ++i) {
      const auto byte = static_cast<uint8_t>(grid.points[point][i] * factor);
      table.entries[point] |= Word{byte} << (8 * i);
    }
  }
  return table;
}

}  // namespace

constinit const GridTable<uint64_t, 256> kGridIQ2_XXS =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2XxsCodes, quant::kIq2Levels), 1);
constinit const GridTable<uint64_t, 512> kGridIQ2_XS =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2XsCodes, quant::kIq2Levels), 1);
constinit const GridTable<uint64_t, 1024> kGridIQ2_S =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2SCodes, quant::kIq2Levels), 1);
constinit const GridTable<uint32_t, 256> kGridIQ3_XXS =
    as_words<uint32_t>(quant::expand_grid<4>(quant::kIq3XxsCodes, quant::kIq3XxsLevels), 1);
constinit const GridTable<uint32_t, 512> kGridIQ3_S =
    as_words<uint32_t>(quant::expand_grid<4>(quant::kIq3SCodes, quant::kIq3SLevels), 1);
constinit const GridTable<uint64_t, 2048> kGridIQ1 =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq1Codes, quant::kIq1Levels), 8);

}  // namespace godwit::cpu
