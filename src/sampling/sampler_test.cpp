#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "tokenizer/small_vocab.h"
#include "tokenizer/tokenizer.h"

namespace godwit::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sampler make(const SamplerSettings& settings) {
  Result<Sampler> sampler = Sampler::create(settings, nullptr);
  EXPECT_TRUE(sampler) << sampler.error().message;
  return std::move(*sampler);
}

std::string error_of(const SamplerSettings& settings) {
  const Result<Sampler> sampler = Sampler::create(settings, nullptr);
  return sampler ? "" : sampler.error().message;
}

int32_t draw(Sampler& sampler, const std::vector<float>& logits, int32_t position) {
  return sampler.sample(logits, {}, Position{position}).value;
}

// Temperature 1 and nothing else: the untouched distribution.
SamplerSettings plain_settings() {
  SamplerSettings settings;
  settings.temperature = 1.0f;
  settings.order = "temperature";
  return settings;
}

std::vector<float> random_logits(uint64_t seed, size_t n) {
  std::vector<float> logits(n);
  RandomStream random(seed);
  for (float& logit : logits) logit = static_cast<float>(4.0 * random.bell());
  return logits;
}

TEST(Argmax, TakesTheFirstOfTheBest) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 2, 3}).value, 1);
  std::vector<float> many(1000, -5.0f);
  many[17] = many[16] = many[999] = 2.0f;
  EXPECT_EQ(argmax(many).value, 16);
  many[999] = 3.0f;
  EXPECT_EQ(argmax(many).value, 999);
}

TEST(Argmax, HasAnAnswerForEverything) {
  EXPECT_EQ(argmax(std::vector<float>{kNan, -1, kNan}).value, 1);
  EXPECT_EQ(argmax(std::vector<float>(40, kNan)).value, 0);
  EXPECT_EQ(argmax(std::vector<float>{kNan, -kInf}).value, 1);
  EXPECT_EQ(argmax(std::vector<float>{1, kInf, kNan, kInf}).value, 1);
}

TEST(Logprob, SumsToOne) {
  const std::vector<float> logits = random_logits(3, 500);
  double sum = 0.0;
  for (int32_t id = 0; id < 500; ++id) {
    sum += std::exp(static_cast<double>(logprob(logits, TokenId{id})));
  }
  EXPECT_NEAR(sum, 1.0, 1e-6);
}

TEST(Logprob, IsTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.25f), kNan};
  EXPECT_NEAR(logprob(logits, TokenId{1}), std::log(0.25), 1e-6);
  EXPECT_EQ(logprob(logits, TokenId{3}), -kInf);
  EXPECT_EQ(logprob(logits, TokenId{4}), -kInf);
  EXPECT_EQ(logprob(logits, TokenId{-1}), -kInf);
}

TEST(Logprob, SurvivesHugeLogits) {
  EXPECT_NEAR(logprob(std::vector<float>{3e38f, 3e38f}, TokenId{0}), std::log(0.5), 1e-6);
  EXPECT_NEAR(logprob(std::vector<float>{kInf, 0, kInf}, TokenId{0}), std::log(0.5), 1e-6);
  EXPECT_EQ(logprob(std::vector<float>{kInf, 0, kInf}, TokenId{1}), -kInf);
}

TEST(TopLogprobs, AreTheLikeliestInOrder) {
  const std::vector<float> logits = {0, 2, 1, 2};
  const std::vector<TokenProbability> top = top_logprobs(logits, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].token.value, 1);
  EXPECT_EQ(top[1].token.value, 3);
  EXPECT_EQ(top[2].token.value, 2);
  for (const TokenProbability& t : top) EXPECT_EQ(t.logprob, logprob(logits, t.token));
  EXPECT_EQ(top_logprobs(logits, 10).size(), 4u);
  EXPECT_TRUE(top_logprobs(logits, 0).empty());
}

TEST(Sampler, IsGreedyAtTemperatureZero) {
  SamplerSettings settings;
  settings.temperature = 0.0f;
  Sampler greedy = make(settings);
  settings.logit_bias = {{TokenId{0}, 0.0f}};  // the same by way of the whole chain
  Sampler chain = make(settings);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = random_logits(seed, 300);
    EXPECT_EQ(draw(greedy, logits, 5), argmax(logits).value);
    EXPECT_EQ(draw(chain, logits, 5), argmax(logits).value);
  }
}

TEST(Sampler, GreedyStillHonoursPenalties) {
  SamplerSettings settings;
  settings.temperature = 0.0f;
  settings.presence_penalty = 2.0f;
  Sampler sampler = make(settings);
  const std::vector<TokenId> history = {TokenId{1}, TokenId{7777}, kNoToken};
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2, 1.5f}, history, Position{3}).value, 2);
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  const std::vector<float> logits = random_logits(9, 1000);
  SamplerSettings settings = plain_settings();
  settings.seed = 42;
  Sampler first = make(settings);
  Sampler second = make(settings);
  settings.seed = 43;
  Sampler other = make(settings);
  int differ = 0;
  for (int32_t position = 0; position < 200; ++position) (void)draw(first, logits, position);
  for (int32_t position = 199; position >= 0; --position) {  // whatever was drawn before
    EXPECT_EQ(draw(first, logits, position), draw(second, logits, position));
    differ += draw(first, logits, position) != draw(other, logits, position) ? 1 : 0;
  }
  EXPECT_GT(differ, 100);
}

// Pearson's statistic over 8 tokens has 7 degrees of freedom: above 24.3 once in a thousand.
TEST(Sampler, DrawsTheDistribution) {
  const std::vector<double> p = {0.3, 0.25, 0.15, 0.1, 0.1, 0.05, 0.04, 0.01};
  std::vector<float> logits;
  for (const double probability : p) logits.push_back(static_cast<float>(std::log(probability)));
  for (const uint64_t seed : {1u, 2u, 3u}) {
    SamplerSettings settings = plain_settings();
    settings.seed = seed;
    Sampler sampler = make(settings);
    constexpr int32_t kDraws = 20000;
    std::vector<double> counts(p.size(), 0.0);
    for (int32_t i = 0; i < kDraws; ++i) counts[static_cast<size_t>(draw(sampler, logits, i))] += 1;
    double statistic = 0.0;
    for (size_t i = 0; i < p.size(); ++i) {
      const double expected = p[i] * kDraws;
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(statistic, 24.3) << "seed " << seed;
  }
}

TEST(Sampler, NeverDrawsTheImpossible) {
  const std::vector<float> logits = {-kInf, kNan, 0.0f, -kInf, 0.0f, kNan};
  Sampler sampler = make(plain_settings());
  for (int32_t position = 0; position < 500; ++position) {
    const int32_t id = draw(sampler, logits, position);
    EXPECT_TRUE(id == 2 || id == 4) << id;
  }
}

TEST(Sampler, AnswersTheLowestIdWhereNothingIsPossible) {
  for (const float temperature : {0.0f, 0.8f}) {
    SamplerSettings settings;
    settings.temperature = temperature;
    Sampler sampler = make(settings);
    EXPECT_EQ(draw(sampler, std::vector<float>(100, kNan), 1), 0);
    EXPECT_EQ(draw(sampler, std::vector<float>(100, -kInf), 1), 0);
  }
}

TEST(Sampler, DefaultsDrawOnlyFromTheNucleus) {
  const std::vector<float> logits = {5, 4.9f, 1, 0, -1};
  Sampler sampler = make(SamplerSettings{});
  for (int32_t position = 0; position < 300; ++position) {
    EXPECT_LE(draw(sampler, logits, position), 1);
  }
}

TEST(Sampler, BiasBansAndForces) {
  SamplerSettings settings = plain_settings();
  settings.logit_bias = {{TokenId{0}, -kInf}, {TokenId{2}, 100.0f}, {TokenId{999}, 1.0f}};
  Sampler sampler = make(settings);
  EXPECT_EQ(draw(sampler, {50, 1, 1}, 0), 2);
  EXPECT_EQ(draw(sampler, {kInf, 1, -500}, 0), 1);
}

// Truncation before temperature and after differ: order is the user's.
TEST(Sampler, RunsStepsInTheGivenOrder) {
  const std::vector<float> logits = {std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  SamplerSettings settings;
  settings.temperature = 4.0f;
  settings.top_p = 0.55f;
  settings.order = "top_p;temperature";
  Sampler before = make(settings);
  settings.order = "temperature;top_p";
  Sampler after = make(settings);
  bool seen = false;
  for (int32_t position = 0; position < 100; ++position) {
    EXPECT_EQ(draw(before, logits, position), 0);
    seen = seen || draw(after, logits, position) == 1;
  }
  EXPECT_TRUE(seen);
}

TEST(SamplerSettings, AcceptEverySpelling) {
  SamplerSettings settings;
  settings.order =
      "Penalties;DRY;top-n-sigma;topnsigma;TOP_K;topk;top-k;typ_p;typ;typ-p;top_p;nucleus;minp;"
      "min-p;xtc;temp;temperature;; ";
  EXPECT_EQ(error_of(settings), "");
  settings.order = "";
  EXPECT_EQ(error_of(settings), "");
}

TEST(SamplerSettings, UnknownNamesSuggestTheNearest) {
  SamplerSettings settings;
  settings.order = "top_k;temprature";
  EXPECT_EQ(error_of(settings),
            "sampler: unknown name 'temprature' in the order; did you mean 'temperature'?");
  settings.order = "min_q";
  EXPECT_NE(error_of(settings).find("'min_p'"), std::string::npos);
}

TEST(SamplerSettings, RefuseValuesOutOfRange) {
  const auto with = [](auto change) {
    SamplerSettings settings;
    change(settings);
    return error_of(settings);
  };
  using S = SamplerSettings;
  EXPECT_NE(with([](S& s) { s.temperature = kNan; }).find("temperature"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.top_p = kInf; }).find("top_p"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.repeat_penalty = 0.0f; }).find("repeat_penalty"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.min_keep = -1; }).find("min_keep"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.dry_allowed_length = -1; }).find("dry_allowed"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.dry_multiplier = 1.0f; }).find("vocabulary"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.logit_bias = {{TokenId{-1}, 0.0f}}; }).find("-1"), std::string::npos);
  EXPECT_NE(with([](S& s) { s.logit_bias = {{TokenId{1}, kNan}}; }).find("nan"), std::string::npos);
}

// In the small vocabulary the first 256 ids are the bytes. After "xaby xab" comes 'y', unless the
// repetition is noticed.
TEST(Sampler, DryTakesBreakersFromTheVocabulary) {
  const Result<tokenizer::Tokenizer> vocabulary =
      tokenizer::Tokenizer::from_vocab(tokenizer::small_vocab("gpt-2"));
  ASSERT_TRUE(vocabulary);
  std::vector<TokenId> history;
  for (const char c : std::string("xaby xab")) history.push_back(TokenId{c});
  std::vector<float> logits(static_cast<size_t>(vocabulary->size()), 0.0f);
  logits['y'] = 1.0f;
  logits['z'] = 0.9f;
  SamplerSettings settings;
  settings.temperature = 0.0f;
  settings.dry_multiplier = 1.0f;
  const auto next = [&](const std::string& breaker) {
    settings.dry_sequence_breakers = {breaker};
    Result<Sampler> sampler = Sampler::create(settings, &*vocabulary);
    EXPECT_TRUE(sampler);
    return sampler->sample(logits, history, Position{8}).value;
  };
  EXPECT_EQ(next("q"), 'z');
  EXPECT_EQ(next("b"), 'y');
  EXPECT_EQ(next("ab"), 'y');  // spelled by two tokens
  EXPECT_EQ(next("xa"), 'y');
  EXPECT_EQ(next(" x"), 'z');  // "ab" after it still repeats
  EXPECT_EQ(next("y "), 'z');
}

// Whatever comes, the answer is a token of the vocabulary.
TEST(Sampler, AnswersInRangeForAnySettings) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream random(seed);
    const auto value = [&](double low, double high) {
      return static_cast<float>(low + (high - low) * random.unit());
    };
    SamplerSettings s;
    s.seed = seed;
    s.temperature = value(-0.5, 2);
    s.dynatemp_range = value(-0.5, 1);
    s.top_k = static_cast<int32_t>(random.below(50)) - 5;
    s.top_p = value(-0.1, 1.1);
    s.min_p = value(-0.1, 1.1);
    s.typical_p = value(-0.1, 1.1);
    s.top_n_sigma = value(-1, 3);
    s.xtc_probability = value(0, 1);
    s.xtc_threshold = value(0, 0.6);
    s.repeat_penalty = value(0.5, 2);
    s.frequency_penalty = value(-1, 1);
    s.penalty_last_n = static_cast<int32_t>(random.below(10)) - 1;
    s.dry_multiplier = value(0, 2);
    s.dry_sequence_breakers = {};
    s.min_keep = static_cast<int32_t>(random.below(5));
    const size_t n_vocab = 1 + random.below(600);
    std::vector<float> logits = random_logits(seed, n_vocab);
    for (int i = 0; i < 5; ++i) {
      const float odd[] = {kNan, kInf, -kInf, 3e38f, 0.0f};
      logits[random.below(n_vocab)] = odd[random.below(5)];
    }
    std::vector<TokenId> history;
    for (size_t i = 0; i < 30; ++i)
      history.push_back(TokenId{static_cast<int32_t>(random.below(40))});
    Sampler sampler = make(s);
    for (int32_t position = 0; position < 5; ++position) {
      const TokenId token = sampler.sample(logits, history, Position{position});
      ASSERT_GE(token.value, 0) << "seed " << seed;
      ASSERT_LT(static_cast<size_t>(token.value), n_vocab) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace godwit::sampling
