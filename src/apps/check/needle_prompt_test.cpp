#include "apps/check/needle_prompt.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

constexpr std::string_view kText = "one\ntwo\nthree\nfour\nfive\n";

TEST(NeedlePrompt, HidesThePassphraseBetweenLines) {
  const std::string message =
      needle_message({.text = kText, .n_bytes = 13, .depth = 0.5, .passphrase = "red-owl-1234"});
  const size_t two = message.find("two\n");
  const size_t needle = message.find("red-owl-1234");
  const size_t three = message.find("three\n");
  ASSERT_NE(needle, std::string::npos);
  EXPECT_LT(two, needle);
  EXPECT_LT(needle, three);
  EXPECT_EQ(message.find("five"), std::string::npos) << "the text was to be cut";
  EXPECT_EQ(message.rfind("red-owl-1234"), needle) << "hidden once, and not in the question";
}

TEST(NeedlePrompt, PutsItBeforeAndAfterTheText) {
  const auto place = [](double depth) {
    return needle_message(
               {.text = kText, .n_bytes = kText.size(), .depth = depth, .passphrase = "x-y-1000"})
        .find("x-y-1000");
  };
  EXPECT_LT(place(0.0), place(0.5));
  EXPECT_LT(place(0.5), place(1.0));
}

TEST(NeedlePrompt, PassphrasesDifferBySeedAndOnlyBySeed) {
  EXPECT_EQ(passphrase(7), passphrase(7));
  EXPECT_NE(passphrase(7), passphrase(8));
}

// The gate of `check needles`: a wrong answer does not pass.
TEST(NeedlePrompt, KnowsAnAnswerThatNamesIt) {
  const std::string secret = "amber-falcon-7314";
  EXPECT_TRUE(names_passphrase("The passphrase is Amber-Falcon-7314.", secret));
  for (const char* wrong : {"", "amber-falcon-7315", "amber falcon", "I cannot find any."}) {
    EXPECT_FALSE(names_passphrase(wrong, secret)) << wrong;
  }
}

}  // namespace
}  // namespace godwit::apps
