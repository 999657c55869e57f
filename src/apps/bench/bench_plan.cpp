#include "apps/bench/bench_plan.h"

#include <algorithm>
#include <charconv>

namespace godwit::apps {

std::string BenchTest::name() const {
  std::string text;
  if (n_prompt > 0) text = fmt::format("pp{}", n_prompt);
  if (n_gen > 0) text += fmt::format("{}tg{}", n_prompt > 0 ? "+" : "", n_gen);
  if (n_depth > 0) text += fmt::format(" @ d{}", n_depth);
  return text;
}

Result<BenchTest> parse_prompt_gen(std::string_view text) {
  BenchTest test;
  const char* const end = text.data() + text.size();
  const auto prompt = std::from_chars(text.data(), end, test.n_prompt);
  const bool comma = prompt.ec == std::errc{} && prompt.ptr != end && *prompt.ptr == ',';
  if (comma) {
    const auto gen = std::from_chars(prompt.ptr + 1, end, test.n_gen);
    if (gen.ec == std::errc{} && gen.ptr == end && (test.n_prompt > 0 || test.n_gen > 0)) {
      return test;
    }
  }
  return fail("-pg '{}': expected PROMPT,GENERATED as 512,128", text);
}

Result<std::vector<BenchTest>> plan_bench(const BenchLists& lists) {
  std::vector<BenchTest> tests;
  for (const size_t depth : lists.depths) {
    for (const size_t n : lists.prompts) {
      if (n > 0) tests.push_back({.n_prompt = n, .n_gen = 0, .n_depth = depth});
    }
    for (const size_t n : lists.generations) {
      if (n > 0) tests.push_back({.n_prompt = 0, .n_gen = n, .n_depth = depth});
    }
    for (const std::string& text : lists.prompt_gens) {
      Result<BenchTest> test = parse_prompt_gen(text);
      if (!test) return fail(std::move(test).error());
      test->n_depth = depth;
      tests.push_back(*test);
    }
  }
  if (tests.empty()) return fail("nothing to measure: give -p, -n or -pg");
  for (const BenchTest& test : tests) {
    if (std::max({test.n_prompt, test.n_gen, test.n_depth}) > kMaxBenchTokens) {
      return fail("a test of more than {} tokens", kMaxBenchTokens);
    }
  }
  return tests;
}

}  // namespace godwit::apps
