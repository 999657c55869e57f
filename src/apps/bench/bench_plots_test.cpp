#include "apps/bench/bench_plots.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/kernel_table.h"

namespace godwit::apps {
namespace {

const PlotSeries* find(const Plot& plot, const std::string& name) {
  const auto found = std::ranges::find(plot.series, name, &PlotSeries::name);
  return found == plot.series.end() ? nullptr : &*found;
}

DecodeRow decode_row(size_t depth, double us, double gbps) {
  DecodeRow row;
  row.row.test = {.n_prompt = 0, .n_gen = 1, .n_depth = depth};
  row.row.bytes_per_token = 1e6;
  row.repetitions = {{.token_us = {us}, .bandwidth_gbps = gbps}};
  return row;
}

TEST(BenchPlots, DecodeIsDrawnByPositionBelowTheFloor) {
  const Plot plot =
      decode_plot({}, {decode_row(900, 200, 20), decode_row(0, 100, 10), decode_row(9, 125, 30)},
                  {{.position = 0, .bytes_per_token = 1e6}, {900, 2e6}});
  const PlotSeries* measured = find(plot, "measured");
  ASSERT_NE(measured, nullptr);
  ASSERT_EQ(measured->points.size(), 3u);
  EXPECT_EQ(measured->points[0].y, 1e4);
  EXPECT_EQ(measured->points[1].x, 9);
  EXPECT_EQ(measured->points[2].x, 900);
  const PlotSeries* floor = find(plot, "floor at 20.0 GB/s");
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor->mark, PlotMark::kLine);
  EXPECT_EQ(floor->points[0].y, 20e9 / 1e6);
  EXPECT_EQ(floor->points[1].y, 20e9 / 2e6);
}

TEST(BenchPlots, PromptsHaveALineForEachLength) {
  PrefillRow row;
  row.row.samples_ns = {1e9};
  std::vector<PrefillRow> rows;
  for (const auto& [n, depth] : {std::pair<size_t, size_t>{64, 0}, {512, 0}, {64, 100}}) {
    row.row.test = {.n_prompt = n, .n_gen = 0, .n_depth = depth};
    rows.push_back(row);
  }
  const Plot plot = prefill_plot({}, rows);
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(find(plot, "pp64")->points.size(), 2u);
  EXPECT_EQ(find(plot, "pp512")->points[0].y, 512);
}

TEST(BenchPlots, TheRoofMeetsWhereMemoryGivesAsMuchAsIsComputed) {
  const cpu::MatVecKernel& kernel = cpu::matvec_kernels().front();
  MatVecResult one{.c = {.kernel = &kernel, .rows = 10, .cols = 100, .n_tokens = 1},
                   .speed = {.us = 1,
                             .bytes = 500,
                             .n_copies = 1,
                             .gbps = 18,
                             .read_gbps = 20,
                             .share = 0.9,
                             .gmacs = 36}};
  MatVecResult many = one;
  many.c.n_tokens = 100;
  many.speed.gmacs = 90;
  const Plot plot = roofline({one, many}, 100, "");
  const PlotSeries* points = find(plot, std::string(kernel.name));
  ASSERT_NE(points, nullptr);
  EXPECT_EQ(points->points[0].x, 2);  // multiply-adds per byte
  EXPECT_EQ(points->points[1].x, 200);
  const PlotSeries* memory = find(plot, "memory, 20.0 GB/s");
  const PlotSeries* cached = find(plot, "cached, 100 Gmac/s");
  ASSERT_TRUE(memory != nullptr && cached != nullptr);
  EXPECT_EQ(memory->points[0].y, 40);
  EXPECT_EQ(memory->points[1].x, 5);
  EXPECT_EQ(cached->points[0].x, 5);
  EXPECT_EQ(cached->points[1].x, 200);
}

TEST(BenchPlots, AttentionIsDrawnBesideTheReads) {
  AttentionResult result;
  result.speed.gbps = 10;
  std::vector<AttentionResult> results;
  for (const auto& [n, gbps] : {std::pair<size_t, double>{2048, 40}, {1024, 20}, {1024, 30}}) {
    result.c.n_positions = n;
    result.speed.read_gbps = gbps;
    results.push_back(result);
  }
  const Plot plot = attention_plot(results, "");
  ASSERT_EQ(plot.series.size(), 2u);
  const PlotSeries* reads = find(plot, "reads alone");
  ASSERT_EQ(reads->points.size(), 2u);
  EXPECT_EQ(reads->points[0].y, 25);
  EXPECT_EQ(reads->points[1].y, 40);
}

}  // namespace
}  // namespace godwit::apps
