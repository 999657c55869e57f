#include "apps/bench/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

Plot plot() {
  return {.title = "speed & <floor>",
          .note = "a \"machine\"\n",
          .x = {.label = "position"},
          .y = {.label = "tokens/s"},
          .series = {{.name = "decode",
                      .mark = PlotMark::kLinkedPoints,
                      .points = {{0, 100, "a"}, {1000, 50}, {4000, 20}}},
                     {.name = "floor", .mark = PlotMark::kLine, .points = {{0, 120}, {4000, 30}}}}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// (cx, cy) of every point.
std::vector<std::pair<double, double>> places(const std::string& svg) {
  const std::regex circle("<circle cx=\"([^\"]*)\" cy=\"([^\"]*)\"");
  std::vector<std::pair<double, double>> found;
  for (std::sregex_iterator i(svg.begin(), svg.end(), circle), end; i != end; ++i) {
    found.emplace_back(std::stod((*i)[1]), std::stod((*i)[2]));
  }
  return found;
}

TEST(Plot, HasEveryPointAndLine) {
  const std::string svg = svg_of(plot());
  EXPECT_EQ(count(svg, "<circle "), 3u);
  EXPECT_EQ(count(svg, "<polyline "), 2u);
  EXPECT_EQ(count(svg, ">decode, a: 0, 100</title>"), 1u);
  EXPECT_EQ(count(svg, ">floor</text>"), 1u);
}

TEST(Plot, HigherValuesAreHigherAndLaterOnesFurtherRight) {
  for (const PlotScale scale : {PlotScale::kLinear, PlotScale::kLogarithmic}) {
    Plot made = plot();
    made.x.scale = made.y.scale = scale;
    made.series[0].points[0].x = 1;
    const auto at = places(svg_of(made));
    ASSERT_EQ(at.size(), 3u);
    for (size_t i = 1; i < at.size(); ++i) {
      EXPECT_LT(at[i - 1].first, at[i].first);
      EXPECT_LT(at[i - 1].second, at[i].second);  // downwards
    }
  }
}

TEST(Plot, LogarithmicAxesHaveEqualStepsForEqualFactors) {
  Plot made = plot();
  made.x.scale = made.y.scale = PlotScale::kLogarithmic;
  made.series = {
      {.name = "x", .mark = PlotMark::kPoints, .points = {{1, 1}, {10, 10}, {100, 100}}}};
  const auto at = places(svg_of(made));
  ASSERT_EQ(at.size(), 3u);
  EXPECT_NEAR(at[1].first - at[0].first, at[2].first - at[1].first, 0.2);
  EXPECT_NEAR(at[1].second - at[0].second, at[2].second - at[1].second, 0.2);
}

TEST(Plot, TextCannotBreakTheDocument) {
  Plot made = plot();
  made.series[0].name = "</svg>\x01\xff";
  const std::string svg = svg_of(made);
  EXPECT_EQ(count(svg, "</svg>"), 1u);
  EXPECT_EQ(count(svg, "speed &amp; &lt;floor&gt;"), 1u);
  for (const char c : svg) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

TEST(Plot, WhatAnAxisCannotShowIsLeftOut) {
  Plot made = plot();
  made.series[0].points.push_back({5000, std::nan("")});
  made.series[0].points.push_back({std::numeric_limits<double>::infinity(), 1});
  EXPECT_EQ(count(svg_of(made), "<circle "), 3u);
  made.x.scale = PlotScale::kLogarithmic;
  EXPECT_EQ(count(svg_of(made), "<circle "), 2u);  // not that at 0
  EXPECT_EQ(count(svg_of(made), "nan"), 0u);
}

TEST(Plot, OfNothingOrOnePointIsStillAPicture) {
  Plot made = plot();
  made.series = {};
  EXPECT_EQ(count(svg_of(made), "nan") + count(svg_of(made), "inf"), 0u);
  made.series = {{.name = "x", .mark = PlotMark::kLinkedPoints, .points = {{0, 0}}}};
  for (const PlotScale scale : {PlotScale::kLinear, PlotScale::kLogarithmic}) {
    made.y.scale = scale;
    EXPECT_EQ(count(svg_of(made), "nan"), 0u);
  }
}

TEST(Plot, APathIsRefusedBeforeAnythingIsMeasured) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(check_plot_path(""));
  EXPECT_TRUE(check_plot_path(folder.file("x.svg").string()));
  EXPECT_FALSE(check_plot_path(folder.path().string()));
  EXPECT_FALSE(check_plot_path(folder.file("no/x.svg").string()));
  EXPECT_TRUE(write_plot(folder.file("x.svg").string(), plot()));
  EXPECT_EQ(folder.read("x.svg"), svg_of(plot()));
  EXPECT_FALSE(write_plot(folder.file("no/x.svg").string(), plot()));
}

}  // namespace
}  // namespace godwit::apps
