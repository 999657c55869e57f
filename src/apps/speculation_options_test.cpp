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

TEST(SpeculationOptions, RefusesWhatIsNoLookup) {
  EXPECT_THROW(parse({"--spec-type=draft-mtp"}), CLI::ValidationError);
  EXPECT_THROW(parse({"--draft-max=1000"}), CLI::ValidationError);
}

}  // namespace
}  // namespace godwit::apps
