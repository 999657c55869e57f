// Logits that transformers computed, as tools/tiny_models.py writes them, and how far others are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "transformers_fixtures.h"

namespace godwit::testing {

// Of the largest logit: what every model stays within, and every mutant does not.
inline constexpr double kTransformersTolerance = 1e-4;

struct Expected {
  std::vector<int32_t> tokens;
  uint32_t n_vocab = 0;
  std::vector<float> logits;  // [n_tokens, n_vocab]

  [[nodiscard]] std::span<const float> after(size_t token) const {
    return std::span(logits).subspan(token * n_vocab, n_vocab);
  }
};

inline Expected read_expected(const std::string& file_name) {
  std::ifstream file(transformers_fixture(file_name), std::ios::binary);
  Expected expected;
  uint32_t n_tokens = 0;
  const auto read = [&](void* to, size_t bytes) {
    file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  };
  read(&n_tokens, sizeof n_tokens);
  read(&expected.n_vocab, sizeof expected.n_vocab);
  expected.tokens.resize(n_tokens);
  read(expected.tokens.data(), n_tokens * sizeof(int32_t));
  expected.logits.resize(size_t{n_tokens} * expected.n_vocab);
  read(expected.logits.data(), expected.logits.size() * sizeof(float));
  EXPECT_TRUE(file.good()) << file_name;
  return expected;
}

// max |found - expected| over the logits of one token, relative to the largest expected one.
// Infinite where anything found is no number.
inline double relative_error(std::span<const float> found, std::span<const float> expected) {
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    if (std::isnan(difference)) return HUGE_VAL;
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    error = std::max(error, difference);
  }
  return error / largest;
}

}  // namespace godwit::testing
