#include "grader/timing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace godwit::grader {
namespace {

// 1e9 bytes at 1,000 GB/s: a floor of 1,000 us.
Timing made_up() {
  Timing timing;
  timing.rows = {
      {.variant = "fast",
       .length = 64,
       .error = 1e-6,
       .bytes = 1000000000,
       .wall_us = {1300.0, 1270.0, 1280.0},
       .device_us = {1250.0, 1240.0, 1260.0}},
      {.variant = "told nothing",
       .length = 64,
       .error = 1e-6,
       .bytes = 1000000000,
       .wall_us = {2000.0, 1990.0, 2010.0},
       .device_us = {}},
      {.variant = "wrong", .length = 64, .error = 0.5, .bytes = 1, .wall_us = {}, .device_us = {}}};
  timing.budgets = {{.variant = "fast",
                     .length = 64,
                     .kind = "attend",
                     .n_steps = 2,
                     .bytes = 500000000,
                     .us = 625.0}};
  timing.problems = {"wrong at 64 positions: not timed"};
  return timing;
}

TEST(Timing, TakesTheMiddleOfSamples) {
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(median({}), 0.0);
}

TEST(Timing, SetsMediansBesideTheFloorAndGivesNoTimeToWrongLogits) {
  const std::string text = timing_text(made_up(), {990.0, 1000.0, 1010.0});
  EXPECT_NE(text.find("1250.0"), std::string::npos) << text;
  EXPECT_NE(text.find("80.0%"), std::string::npos) << text;  // of the floor
  EXPECT_NE(text.find("50.0%"), std::string::npos) << text;  // wall time where that is all
  EXPECT_NE(text.find("attend    x 2      625.0 us, floor   500.0"), std::string::npos) << text;
  EXPECT_NE(text.find("problem: wrong at 64"), std::string::npos) << text;
}

TEST(Timing, KeepsRawSamplesInJson) {
  const auto json = nlohmann::json::parse(timing_json({}, made_up(), {990.0, 1000.0, 1010.0}));
  EXPECT_EQ(json["read_bandwidth_gbs"], 1000.0);
  EXPECT_EQ(json["rows"][0]["us_per_token"], 1250.0);
  EXPECT_EQ(json["rows"][0]["device_us"].size(), 3u);
  EXPECT_EQ(json["rows"][1]["us_per_token"], 2000.0);
  EXPECT_TRUE(json["rows"][2]["us_per_token"].is_null());
  EXPECT_EQ(json["budgets"][0]["us"], 625.0);
}

}  // namespace
}  // namespace godwit::grader
