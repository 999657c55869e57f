#include "apps/expert_figures.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

engine::ExpertReport report() {
  return {.layers = {{.name = "blk.0",
                      .counts = {.hits = 70,
                                 .misses = 20,
                                 .bytes_read = 4000000,
                                 .stall_us = 3000,
                                 .prefetch_hits = 10}},
                     {.name = "blk.1", .counts = {.hits = 10, .misses = 0}}},
          .slot_bytes = 1 << 20,
          .staging_bytes = 4096,
          .io = {.read_bytes = 5000000, .device_bytes = 1000000}};
}

TEST(ExpertFigures, CountsWhatWasReadAheadAsAMiss) {
  EXPECT_DOUBLE_EQ(expert_figures(report(), 2).hit_rate, 0.7);
  EXPECT_EQ(expert_line(report(), 2),
            "experts: 70.0 % there, 2.0 MB/token read (0.5 from the device), 1.5 ms/token waited");
}

TEST(ExpertFigures, JsonHasEveryLayer) {
  const nlohmann::json json = expert_json(report(), 2);
  EXPECT_DOUBLE_EQ(json["bytes_read_per_token"], 2e6);
  ASSERT_EQ(json["layers"].size(), 2u);
  EXPECT_EQ(json["layers"][0]["hits"], 60);
  EXPECT_EQ(json["layers"][0]["read_ahead_in_time"], 10);
  EXPECT_EQ(json["layers"][1]["layer"], "blk.1");
  EXPECT_DOUBLE_EQ(json["layers"][1]["hit_rate"], 1.0);
}

TEST(ExpertReport, IsADifferenceOfTwoCounts) {
  engine::ExpertReport later = report();
  later.layers[0].counts.hits += 5;
  later.io.device_bytes += 7;
  const engine::ExpertReport difference = later.since(report());
  EXPECT_EQ(difference.layers[0].counts.hits, 5u);
  EXPECT_EQ(difference.layers[0].counts.misses, 0u);
  EXPECT_EQ(difference.io.device_bytes, 7u);
  EXPECT_EQ(difference.slot_bytes, report().slot_bytes);
}

}  // namespace
}  // namespace godwit::apps
