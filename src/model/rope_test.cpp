#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace godwit::model {
namespace {

RopeConfig config(RopeScaling scaling) {
  RopeConfig c;
  c.base = 10000.0;
  c.n_rot = 64;
  c.scaling = scaling;
  c.factor = 4.0;
  c.original_context = 2048;
  return c;
}

TEST(Rope, PlainFrequenciesFallGeometrically) {
  const program::Rope rope = make_rope(config(RopeScaling::kNone), {});
  ASSERT_EQ(rope.frequencies.size(), 32u);
  EXPECT_EQ(rope.frequencies[0], 1.0);
  EXPECT_NEAR(rope.frequencies[16], 0.01, 1e-15);
  EXPECT_EQ(rope.magnitude, 1.0);
}

TEST(Rope, LinearScalingDividesEveryFrequency) {
  const program::Rope plain = make_rope(config(RopeScaling::kNone), {});
  const program::Rope scaled = make_rope(config(RopeScaling::kLinear), {});
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_DOUBLE_EQ(scaled.frequencies[i], plain.frequencies[i] / 4);
  }
}

// The ends of the ramp by hand: 32 turns of 2,048 positions fall at pair
// 32 ln(2048 / (32 * 2 pi)) / ln 10000 = 8.06, one turn at 20.1; floor and ceiling: 8 and 21.
TEST(Rope, YarnKeepsFastDimensionsAndInterpolatesSlowOnes) {
  const program::Rope plain = make_rope(config(RopeScaling::kNone), {});
  const program::Rope yarn = make_rope(config(RopeScaling::kYarn), {});
  for (size_t i = 0; i <= 8; ++i) EXPECT_DOUBLE_EQ(yarn.frequencies[i], plain.frequencies[i]) << i;
  for (size_t i = 21; i < 32; ++i) {
    EXPECT_DOUBLE_EQ(yarn.frequencies[i], plain.frequencies[i] / 4) << i;
  }
  for (size_t i = 9; i < 21; ++i) {
    const double kept = 1.0 - (static_cast<double>(i) - 8.0) / 13.0;
    EXPECT_NEAR(yarn.frequencies[i] / plain.frequencies[i], 0.25 * (1 - kept) + kept, 1e-12) << i;
  }
  EXPECT_DOUBLE_EQ(yarn.magnitude, 1.0 + 0.1 * std::log(4.0));
}

// The ends of the same ramp as they are: pairs 9 to 20 lie inside it, now nearer to its ends.
TEST(Rope, YarnLeavesTheEndsOfItsRampWhereTheModelDoes) {
  RopeConfig c = config(RopeScaling::kYarn);
  c.yarn_whole_ends = false;
  const program::Rope plain = make_rope(config(RopeScaling::kNone), {});
  const program::Rope yarn = make_rope(c, {});
  const auto end = [](double turns) {
    return 32.0 * std::log(2048.0 / (turns * 2.0 * 3.141592653589793)) / std::log(10000.0);
  };
  for (size_t i = 9; i < 21; ++i) {
    const double kept =
        std::max(0.0, 1.0 - (static_cast<double>(i) - end(32.0)) / (end(1.0) - end(32.0)));
    EXPECT_NEAR(yarn.frequencies[i] / plain.frequencies[i], 0.25 * (1 - kept) + kept, 1e-12) << i;
  }
}

TEST(Rope, FactorsDivideTheirOwnFrequency) {
  std::vector<float> factors(32, 1.0f);
  factors[5] = 8.0f;
  const program::Rope plain = make_rope(config(RopeScaling::kNone), {});
  const program::Rope rope = make_rope(config(RopeScaling::kNone), factors);
  EXPECT_DOUBLE_EQ(rope.frequencies[5], plain.frequencies[5] / 8);
  EXPECT_DOUBLE_EQ(rope.frequencies[6], plain.frequencies[6]);
}

}  // namespace
}  // namespace godwit::model
