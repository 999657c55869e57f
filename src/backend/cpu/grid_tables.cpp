#include "backend/cpu/grid_tables.h"

#include "quant/grids.h"

namespace godwit::cpu {
namespace {

// The bytes of each point as one word.
template <class Word, size_t N>
constexpr GridTable<Word, N> as_words(const quant::Grid<N, sizeof(Word)>& grid) {
  GridTable<Word, N> table{};
  for (size_t point = 0; point < N; ++point) {
    for (size_t i = 0; i < sizeof(Word); ++i) {
      const auto byte = static_cast<uint8_t>(grid.points[point][i]);
      table.entries[point] |= Word{byte} << (8 * i);
    }
  }
  return table;
}

template <size_t N>
constexpr LevelTable<N> as_levels(const quant::CodeTable<N>& table, unsigned bits) {
  const unsigned mask = (1u << bits) - 1;
  LevelTable<N> levels{};
  for (size_t point = 0; point < N; ++point) {
    const unsigned code = table.codes[point];
    levels.low[point] = static_cast<uint8_t>(code & mask);
    levels.high[point] = static_cast<uint8_t>(code >> bits & mask);
  }
  return levels;
}

// A weight by the number of its level and whether its sign bit is set.
struct Weights {
  int plus[8];
  int minus[8];
};

template <size_t N>
constexpr Weights magnitudes(const quant::ValueTable<N>& levels) {
  Weights weights{};
  for (size_t i = 0; i < N; ++i) {
    weights.plus[i] = levels.values[i];
    weights.minus[i] = -levels.values[i];
  }
  return weights;
}

struct Place {
  unsigned shift;
  unsigned sign;
};

template <size_t kTables>
constexpr ValueTables<kTables> as_values(const Weights& weights, unsigned bits,
                                         const Place (&places)[kTables]) {
  ValueTables<kTables> tables{};
  for (size_t t = 0; t < kTables; ++t) {
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned level = i >> places[t].shift & ((1u << bits) - 1);
      const bool minus = (i >> places[t].sign & 1u) != 0;
      const int weight = minus ? weights.minus[level] : weights.plus[level];
      tables.values[t][i] = static_cast<uint8_t>(64 + weight);
    }
  }
  return tables;
}

constexpr Place kPlaces2[4] = {{0, 4}, {2, 5}, {2, 0}, {4, 1}};
constexpr Place kPlaces3[6] = {{0, 3}, {3, 0}, {0, 4}, {3, 1}, {0, 5}, {3, 2}};

}  // namespace

constinit const GridTable<uint64_t, 256> kGridIQ2_XXS =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2XxsCodes, quant::kIq2Levels));
constinit const GridTable<uint64_t, 512> kGridIQ2_XS =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2XsCodes, quant::kIq2Levels));
constinit const GridTable<uint64_t, 1024> kGridIQ2_S =
    as_words<uint64_t>(quant::expand_grid<8>(quant::kIq2SCodes, quant::kIq2Levels));
constinit const GridTable<uint32_t, 256> kGridIQ3_XXS =
    as_words<uint32_t>(quant::expand_grid<4>(quant::kIq3XxsCodes, quant::kIq3XxsLevels));
constinit const GridTable<uint32_t, 512> kGridIQ3_S =
    as_words<uint32_t>(quant::expand_grid<4>(quant::kIq3SCodes, quant::kIq3SLevels));

constinit const LevelTable<256> kLevelsIQ2_XXS = as_levels(quant::kIq2XxsCodes, 8);
constinit const LevelTable<512> kLevelsIQ2_XS = as_levels(quant::kIq2XsCodes, 8);
constinit const LevelTable<1024> kLevelsIQ2_S = as_levels(quant::kIq2SCodes, 8);
constinit const LevelTable<256> kLevelsIQ3_XXS = as_levels(quant::kIq3XxsCodes, 6);
constinit const LevelTable<512> kLevelsIQ3_S = as_levels(quant::kIq3SCodes, 6);

constinit const ValueTables<4> kValuesIQ2 = as_values(magnitudes(quant::kIq2Levels), 2, kPlaces2);
constinit const ValueTables<6> kValuesIQ3_XXS =
    as_values(magnitudes(quant::kIq3XxsLevels), 3, kPlaces3);
constinit const ValueTables<6> kValuesIQ3_S =
    as_values(magnitudes(quant::kIq3SLevels), 3, kPlaces3);

}  // namespace godwit::cpu
