#include "apps/speculation_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace godwit::apps {
namespace {

SpeculationOptions parse(std::vector<std::string> arguments) {
  CLI::App app("test");
  SpeculationOptions options;
  add_speculation_options(app, options);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return options;
}

TEST(SpeculationOptions, NoneDraftsNothingAndTakesNoRows) {
  const SpeculationOptions options = parse({"--spec-type=none"});
  EXPECT_EQ(speculation_settings(options).max_draft, 0u);
  engine::EngineSettings settings;
  make_room(options, settings);
  EXPECT_EQ(settings.max_logit_rows, 1u);
}

TEST(SpeculationOptions, UpstreamsSpellingsOldAndNew) {
  for (const char* flag : {"--spec-draft-n-max=7", "--draft-max=7", "--draft=7", "--draft-n=7"}) {
    const SpeculationOptions options = parse({"--spec-type=ngram-mod", flag, "--draft-min=3"});
    EXPECT_EQ(speculation_settings(options).max_draft, 7u) << flag;
    EXPECT_EQ(speculation_settings(options).min_draft, 3u);
    engine::EngineSettings settings;
    make_room(options, settings);
    EXPECT_EQ(settings.max_logit_rows, 8u);
  }
}

TEST(SpeculationOptions, TheModelsOwnHeadIsLoadedWhereItDrafts) {
  for (const char* type : {"--spec-type=draft-mtp", "--spec-type=mtp"}) {
    const SpeculationOptions options = parse({type, "--draft-max=3", "--draft-p-min=0.5"});
    EXPECT_EQ(speculation_settings(options).drafter, engine::Drafter::kOwnHead);
    EXPECT_EQ(speculation_settings(options).min_probability, 0.5f);
    engine::EngineSettings settings;
    make_room(options, settings);
    EXPECT_TRUE(settings.with_mtp);
    EXPECT_EQ(settings.max_tentative_rows, 3u);
  }
  engine::EngineSettings settings;
  make_room(parse({"--spec-type=ngram-simple"}), settings);
  EXPECT_FALSE(settings.with_mtp);
}

TEST(SpeculationOptions, RefusesWhatItHasNot) {
  EXPECT_THROW(parse({"--spec-type=draft-eagle3"}), CLI::ValidationError);
  EXPECT_THROW(parse({"--draft-max=1000"}), CLI::ValidationError);
}

}  // namespace
}  // namespace godwit::apps
