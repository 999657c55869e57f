#include "apps/bench/bench_plan.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

std::vector<std::string> names(const BenchLists& lists) {
  std::vector<std::string> found;
  const auto tests = plan_bench(lists);
  if (!tests) return {tests.error().message};
  for (const BenchTest& test : *tests) found.push_back(test.name());
  return found;
}

TEST(BenchPlan, DefaultsAreLlamaBenchs) {
  EXPECT_EQ(names({}), (std::vector<std::string>{"pp512", "tg128"}));
}

TEST(BenchPlan, OrdersByDepthThenKind) {
  EXPECT_EQ(
      names({.prompts = {8, 16}, .generations = {4}, .prompt_gens = {"2,3"}, .depths = {0, 9}}),
      (std::vector<std::string>{"pp8", "pp16", "tg4", "pp2+tg3", "pp8 @ d9", "pp16 @ d9",
                                "tg4 @ d9", "pp2+tg3 @ d9"}));
}

TEST(BenchPlan, ZeroLeavesAKindOut) {
  EXPECT_EQ(names({.prompts = {0}, .generations = {4}, .prompt_gens = {}, .depths = {0}}),
            std::vector<std::string>{"tg4"});
  EXPECT_FALSE(plan_bench({.prompts = {0}, .generations = {0}, .prompt_gens = {}, .depths = {0}}));
}

TEST(BenchPlan, RefusesAbsurdLengths) {
  EXPECT_FALSE(plan_bench(
      {.prompts = {size_t{1} << 40}, .generations = {}, .prompt_gens = {}, .depths = {0}}));
}

TEST(BenchPlan, ReadsPromptAndGeneration) {
  const auto test = parse_prompt_gen("512,128");
  ASSERT_TRUE(test);
  EXPECT_EQ(test->n_prompt, 512u);
  EXPECT_EQ(test->n_gen, 128u);
  EXPECT_EQ(test->n_positions(), 640u);
  EXPECT_EQ(parse_prompt_gen("0,5")->name(), "tg5");
}

TEST(BenchPlan, RefusesOtherPairs) {
  for (const char* text : {"", ",", "5", "5,", ",5", "5,6,7", "5, 6", " 5,6", "-5,6", "5,-6", "0,0",
                           "5,6x", "99999999999999999999,1"}) {
    EXPECT_FALSE(parse_prompt_gen(text)) << text;
  }
}

}  // namespace
}  // namespace godwit::apps
