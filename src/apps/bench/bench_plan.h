// Which tests a `bench` run makes, from llama-bench's flags.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

// Of a prompt, a generation or a depth: beyond all reason.
inline constexpr size_t kMaxBenchTokens = size_t{1} << 22;

struct BenchTest {
  size_t n_prompt = 0;
  size_t n_gen = 0;
  size_t n_depth = 0;  // positions filled before the clock starts

  [[nodiscard]] size_t n_positions() const { return n_depth + n_prompt + n_gen; }
  [[nodiscard]] std::string name() const;  // "pp512", "tg128 @ d4096", "pp512+tg128"

  friend bool operator==(const BenchTest&, const BenchTest&) = default;
};

struct BenchLists {
  std::vector<size_t> prompts = {512};
  std::vector<size_t> generations = {128};
  std::vector<std::string> prompt_gens;  // "512,128"
  std::vector<size_t> depths = {0};
};

// "512,128". Errors: anything else, and two zeros.
[[nodiscard]] Result<BenchTest> parse_prompt_gen(std::string_view text);

// llama-bench's order: for each depth the prompt tests, the generation tests, then both in one.
// Errors: nothing to measure; a test of absurd length.
[[nodiscard]] Result<std::vector<BenchTest>> plan_bench(const BenchLists& lists);

}  // namespace godwit::apps
