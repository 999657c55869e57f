#include "experts/route_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace godwit::experts {
namespace {

constexpr const char* kTrace =
    "godwit-route-trace 1 layers=2 experts=8\n"
    "4 0 1 2 3\n4 1 4 5\n"
    "9 0 7 0\n9 1 6 5\n";

std::string error_of(const std::string& text, RouteReplay::Shape shape) {
  const auto trace = RouteTrace::parse(text, "test");
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().message);
  const auto replay = RouteReplay::create(*trace, shape);
  return replay ? "" : replay.error().message;
}

TEST(RouteReplay, GivesTheChoicesOfTheTraceAgainAndAgain) {
  const auto trace = RouteTrace::parse(kTrace, "test");
  ASSERT_TRUE(trace);
  const auto replay = RouteReplay::create(*trace, {.n_layers = 2, .n_experts = 8, .n_used = 2});
  ASSERT_TRUE(replay) << replay.error().message;
  const auto is = [&](uint64_t token, uint32_t layer, std::vector<uint32_t> expected) {
    return std::ranges::equal(replay->experts(token, layer), expected);
  };
  EXPECT_TRUE(is(0, 0, {1, 2}));
  EXPECT_TRUE(is(0, 1, {4, 5}));
  EXPECT_TRUE(is(1, 0, {7, 0}));
  EXPECT_TRUE(is(1, 1, {6, 5}));
  EXPECT_TRUE(is(7, 0, {7, 0}));
}

TEST(RouteReplay, RefusesATraceOfAnotherShape) {
  EXPECT_NE(error_of(kTrace, {.n_layers = 3, .n_experts = 8, .n_used = 2}).find("2 layers"),
            std::string::npos);
  EXPECT_NE(error_of(kTrace, {.n_layers = 2, .n_experts = 16, .n_used = 2}).find("8 experts"),
            std::string::npos);
  EXPECT_NE(error_of(kTrace, {.n_layers = 2, .n_experts = 8, .n_used = 3}).find("layer 1"),
            std::string::npos);
  EXPECT_NE(error_of("godwit-route-trace 1 layers=2 experts=8\n0 1 3\n",
                     {.n_layers = 2, .n_experts = 8, .n_used = 1})
                .find("no experts in layer 0"),
            std::string::npos);
  EXPECT_NE(error_of("godwit-route-trace 1 layers=2 experts=8\n0 0 3\n1 0 3\n1 1 2\n",
                     {.n_layers = 2, .n_experts = 8, .n_used = 1})
                .find("token 0 of it has no experts in layer 1"),
            std::string::npos);
  EXPECT_NE(error_of("godwit-route-trace 1 layers=2 experts=8\n",
                     {.n_layers = 2, .n_experts = 8, .n_used = 1})
                .find("no tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace godwit::experts
