#include "apps/sampling_options.h"

#include <gtest/gtest.h>

#include <limits>

namespace godwit::apps {
namespace {

Result<engine::GenerateSettings> parse(std::vector<std::string> arguments) {
  CLI::App app("test");
  SamplingOptions options;
  add_sampling_options(app, options);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return generate_settings(options);
}

TEST(SamplingOptions, DefaultsAreLlamaCpps) {
  const auto settings = parse({});
  ASSERT_TRUE(settings);
  const sampling::SamplerSettings& s = settings->sampler;
  EXPECT_EQ(s.temperature, 0.8f);
  EXPECT_EQ(s.top_k, 40);
  EXPECT_EQ(s.top_p, 0.95f);
  EXPECT_EQ(s.min_p, 0.05f);
  EXPECT_EQ(s.repeat_penalty, 1.0f);
  EXPECT_EQ(s.penalty_last_n, 64);
  EXPECT_EQ(s.order, "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
  EXPECT_EQ(settings->max_tokens, -1);
}

TEST(SamplingOptions, ASeedIsKeptAndNoSeedIsDrawn) {
  EXPECT_EQ(parse({"--seed=7"})->sampler.seed, 7u);
  EXPECT_NE(parse({})->sampler.seed, parse({})->sampler.seed);
}

TEST(SamplingOptions, EscapesInStopsAndBreakers) {
  const auto settings = parse({"--stop=\\n\\n", "--dry-sequence-breaker=\\t"});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->stops, std::vector<std::string>{"\n\n"});
  EXPECT_EQ(settings->sampler.dry_sequence_breakers, std::vector<std::string>{"\t"});
  EXPECT_EQ(parse({"--stop=\\n", "--no-escape"})->stops, std::vector<std::string>{"\\n"});
}

TEST(SamplingOptions, NoneMeansNoBreakers) {
  EXPECT_TRUE(parse({"--dry-sequence-breaker=none"})->sampler.dry_sequence_breakers.empty());
  EXPECT_EQ(parse({})->sampler.dry_sequence_breakers.size(), 4u);
}

TEST(SamplingOptions, RefusesWhatTheSamplerRefuses) {
  EXPECT_FALSE(parse({"--temp=nan"}));
  EXPECT_FALSE(parse({"--samplers=top_k;nonsense"}));
  EXPECT_FALSE(parse({"--repeat-penalty=0"}));
  // DRY with the usual breakers needs a vocabulary, which is no reason to refuse it here.
  EXPECT_TRUE(parse({"--dry-multiplier=0.8"}));
}

TEST(LogitBias, ReadsIdSignAndNumber) {
  EXPECT_EQ(parse_logit_bias("15043+1.5").value(), (std::pair{TokenId{15043}, 1.5f}));
  EXPECT_EQ(parse_logit_bias("15043-1.5").value(), (std::pair{TokenId{15043}, -1.5f}));
  EXPECT_EQ(parse_logit_bias("0-inf").value().second, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(parse_logit_bias("7+1e2").value().second, 100.0f);
}

TEST(LogitBias, RefusesAllElse) {
  for (const char* text : {"", "5", "5+", "+1", "5+-1", "5--1", "5-+1", "5++1", "-5+1", "x+1",
                           "5 +1", "5+ 1", "5+1x", "5=1", "99999999999+1", "5+1e99"}) {
    EXPECT_FALSE(parse_logit_bias(text)) << text;
  }
}

}  // namespace
}  // namespace godwit::apps
