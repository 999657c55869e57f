// Scores against the same sums written out in double precision, and against themselves for other
// numbers of threads and instruction sets.
#include "apps/token_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"

namespace godwit::apps {
namespace {

constexpr size_t kVocab = 137;
constexpr size_t kRows = 5;

std::vector<float> random_logits(uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> logits(kRows * kVocab);
  for (float& x : logits) x = static_cast<float>(4 * random.bell());
  return logits;
}

std::vector<TokenId> random_targets() {
  RandomStream random(77);
  std::vector<TokenId> targets;
  for (size_t i = 0; i < kRows; ++i)
    targets.push_back({static_cast<int32_t>(random.below(kVocab))});
  return targets;
}

std::vector<double> log_softmax(std::span<const float> row) {
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x));
  std::vector<double> out;
  for (const float x : row) out.push_back(static_cast<double>(x) - std::log(sum));
  return out;
}

// A file of one chunk: 12 tokens, 5 rows.
std::vector<std::byte> base_file(std::span<const float> logits) {
  const LogitsShape shape{.n_ctx = 12, .n_vocab = kVocab, .n_chunks = 1};
  std::vector<std::byte> bytes(20 + 48);
  std::memcpy(bytes.data(), "_logits_", 8);
  std::memcpy(bytes.data() + 8, &shape.n_ctx, 4);
  std::memcpy(bytes.data() + 12, &shape.n_vocab, 4);
  std::memcpy(bytes.data() + 16, &shape.n_chunks, 4);
  TokenScorer scorer(1, Isa::kGeneric, kVocab);
  const auto packed = scorer.pack(logits, scorer.score(logits, random_targets()));
  bytes.insert(bytes.end(), packed.begin(), packed.end());
  return bytes;
}

TEST(TokenScores, AreLogLikelihoods) {
  const std::vector<float> logits = random_logits(1);
  const std::vector<TokenId> targets = random_targets();
  TokenScorer scorer(1, Isa::kGeneric, kVocab);
  const std::vector<TokenScore> scores = scorer.score(logits, targets);
  for (size_t row = 0; row < kRows; ++row) {
    const auto expected = log_softmax(std::span(logits).subspan(row * kVocab, kVocab));
    EXPECT_NEAR(scores[row].nll, -expected[static_cast<size_t>(targets[row].value)], 1e-6);
  }
}

TEST(TokenScores, SurviveLargeLogits) {
  std::vector<float> logits(kVocab, -3e38f);
  logits[3] = 3e38f;
  TokenScorer scorer(1, Isa::kGeneric, kVocab);
  const std::vector<TokenId> target = {TokenId{3}};
  EXPECT_NEAR(scorer.score(logits, target)[0].nll, 0.0, 1e-9);
}

TEST(TokenScores, DivergeFromABaseAsWrittenOut) {
  const std::vector<float> base = random_logits(1);
  const std::vector<float> logits = random_logits(2);
  const std::vector<TokenId> targets = random_targets();
  const std::vector<std::byte> bytes = base_file(base);
  const auto file = LogitsFile::parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  TokenScorer scorer(2, Isa::kGeneric, kVocab);
  const auto scores = scorer.compare(logits, targets, {*file, 0, 0});
  ASSERT_TRUE(scores) << scores.error().message;
  for (size_t row = 0; row < kRows; ++row) {
    const auto p = log_softmax(std::span(base).subspan(row * kVocab, kVocab));
    const auto q = log_softmax(std::span(logits).subspan(row * kVocab, kVocab));
    double kld = 0;
    for (size_t i = 0; i < kVocab; ++i) kld += std::exp(p[i]) * (p[i] - q[i]);
    const auto target = static_cast<size_t>(targets[row].value);
    const DivergenceScore& score = (*scores)[row];
    EXPECT_GT(kld, 0.1);
    EXPECT_NEAR(score.kld, kld, 1e-3);
    EXPECT_NEAR(score.nll, -q[target], 1e-6);
    EXPECT_NEAR(score.nll_base, -p[target], 16.0 / 65535);
    EXPECT_NEAR(score.p_diff, std::exp(q[target]) - std::exp(p[target]), 1e-4);
    const bool same = std::max_element(p.begin(), p.end()) - p.begin() ==
                      std::max_element(q.begin(), q.end()) - q.begin();
    EXPECT_EQ(score.same_top, same);
  }
}

TEST(TokenScores, AModelDoesNotDivergeFromItself) {
  const std::vector<float> logits = random_logits(1);
  const std::vector<std::byte> bytes = base_file(logits);
  const auto file = LogitsFile::parse(bytes);
  ASSERT_TRUE(file);
  TokenScorer scorer(1, Isa::kGeneric, kVocab);
  const auto scores = scorer.compare(logits, random_targets(), {*file, 0, 0});
  ASSERT_TRUE(scores);
  for (const DivergenceScore& score : *scores) {
    EXPECT_NEAR(score.kld, 0, 2e-4);
    EXPECT_TRUE(score.same_top);
  }
}

TEST(TokenScores, AreTheSameBitsForThreadsAndInstructionSets) {
  const std::vector<float> logits = random_logits(3);
  const std::vector<TokenId> targets = random_targets();
  const std::vector<std::byte> bytes = base_file(random_logits(4));
  const auto file = LogitsFile::parse(bytes);
  ASSERT_TRUE(file);
  TokenScorer one(1, Isa::kGeneric, kVocab);
  TokenScorer three(3, detected_isa(), kVocab);
  const auto a = one.score(logits, targets);
  const auto b = three.score(logits, targets);
  const auto c = one.compare(logits, targets, {*file, 0, 0});
  const auto d = three.compare(logits, targets, {*file, 0, 0});
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(a[row].nll, b[row].nll);
    EXPECT_EQ((*c)[row].kld, (*d)[row].kld);
  }
}

}  // namespace
}  // namespace godwit::apps
