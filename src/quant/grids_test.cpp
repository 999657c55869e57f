#include "quant/grids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/random_fill.h"

namespace godwit::quant {
namespace {

template <size_t N, size_t n, size_t n_levels>
void expect_distinct_points_at(const Grid<N, n>& grid, const ValueTable<n_levels>& levels) {
  std::set<std::vector<int8_t>> points;
  for (const auto& point : grid.points) {
    points.emplace(std::begin(point), std::end(point));
    for (const int8_t weight : point) {
      EXPECT_NE(std::ranges::find(levels.values, weight), std::end(levels.values)) << int{weight};
    }
  }
  EXPECT_EQ(points.size(), N);
}

TEST(Grids, HaveDistinctPointsAtTheirLevels) {
  expect_distinct_points_at(iq1_grid(), kIq1Levels);
  expect_distinct_points_at(iq2_xxs_grid(), kIq2Levels);
  expect_distinct_points_at(iq2_xs_grid(), kIq2Levels);
  expect_distinct_points_at(iq2_s_grid(), kIq2Levels);
  expect_distinct_points_at(iq3_xxs_grid(), kIq3XxsLevels);
  expect_distinct_points_at(iq3_s_grid(), kIq3SLevels);
}

TEST(Grids, EvenSignsKeepSevenSignsAndMakeTheirNumberEven) {
  for (uint32_t code = 0; code < 128; ++code) {
    const uint8_t signs = even_signs(code);
    EXPECT_EQ(signs & 0x7fu, code);
    EXPECT_EQ(std::popcount(signs) % 2, 0) << code;
  }
}

TEST(Grids, SignWordIsFourCodesAndAScaleAtAnyAddress) {
  const uint32_t bits = 0x5u << 28 | 0x7fu << 21 | 0x01u << 14 | 0x03u << 7 | 0x40u;
  const uint8_t bytes[5] = {0xff, static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8),
                            static_cast<uint8_t>(bits >> 16), static_cast<uint8_t>(bits >> 24)};
  const SignWord word = load_sign_word(bytes + 1);
  EXPECT_EQ(word.bits, bits);
  EXPECT_EQ(word.scale(), 5);
  EXPECT_EQ(word.signs(0), 0xc0);
  EXPECT_EQ(word.signs(1), 0x03);
  EXPECT_EQ(word.signs(2), 0x81);
  EXPECT_EQ(word.signs(3), 0xff);
}

// The mean square of the random codes for one scale.
template <class ValueOf>
double mean_square_of_codes(float scale, uint8_t last, ValueOf value_of) {
  RandomStream random(5);
  constexpr int kRounds = 1 << 14;
  double sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto value =
        static_cast<double>(value_of(random_scale_code(random, scale, last, value_of)));
    sum += value * value;
  }
  return sum / kRounds;
}

TEST(RandomScaleCode, HasTheMeanSquareOfAScaleBetweenTwoCodes) {
  for (const float scale : {0.0004f, 0.003f, 0.02f, 1.0f, 1.9f, 200.0f}) {
    const double wanted = static_cast<double>(scale) * static_cast<double>(scale);
    EXPECT_NEAR(mean_square_of_codes(scale, 254, e8m0_to_f32_half) / wanted, 1.0, 0.03) << scale;
    EXPECT_NEAR(mean_square_of_codes(scale, 0x7e, ue4m3_to_f32_half) / wanted, 1.0, 0.03) << scale;
  }
}

TEST(RandomScaleCode, StaysInTheRangeOfTheCodes) {
  EXPECT_EQ(mean_square_of_codes(1e9f, 0x7e, ue4m3_to_f32_half), 224.0 * 224.0);
  EXPECT_EQ(mean_square_of_codes(0.0f, 0x7e, ue4m3_to_f32_half), 0.0);
}

}  // namespace
}  // namespace godwit::quant
