#include "tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.h"

namespace godwit::tokenizer {
namespace {

std::string show(std::string_view text, std::span<const Fragment> fragments) {
  std::string out;
  for (const Fragment& f : fragments) {
    const std::string part(text.substr(f.range.begin, f.range.end - f.range.begin));
    out += f.token.exists() ? "(" + std::to_string(f.token.value) + ")" : "[" + part + "]";
  }
  return out;
}

std::string partition(const SpecialTokens& specials, std::string_view text,
                      std::vector<TextRange> user_ranges) {
  return show(text, specials.partition(text, Specials::kParse, user_ranges));
}

TEST(SpecialTokens, CutTextWhereTheyStand) {
  const std::vector<SpecialToken> tokens{{{0}, "<x>"}, {{1}, "<y>"}};
  const SpecialTokens specials(tokens);
  EXPECT_EQ(partition(specials, "a<x><y>b", {}), "[a](0)(1)[b]");
  EXPECT_EQ(partition(specials, "<x", {}), "[<x]");
  EXPECT_EQ(partition(specials, "", {}), "");
}

TEST(SpecialTokens, GiveLongerTokensTheFirstChoiceAnywhere) {
  const std::vector<SpecialToken> tokens{{{0}, "ab"}, {{1}, "bcd"}, {{2}, "abab"}, {{3}, "a"}};
  const SpecialTokens specials(tokens);
  EXPECT_EQ(partition(specials, "abcd", {}), "(3)(1)") << "bcd is longer, so only a is left";
  EXPECT_EQ(partition(specials, "ababab", {}), "(2)(0)");
}

TEST(SpecialTokens, RecogniseControlTokensOnlyWhenParsing) {
  const std::vector<SpecialToken> tokens{{{0}, "<x>", Recognised::kWhenParsing},
                                         {{1}, "<y>", Recognised::kOutsideUserText},
                                         {{2}, "<y><x>", Recognised::kWhenParsing}};
  const SpecialTokens specials(tokens);
  const std::string_view text = "<x><y><x>";
  EXPECT_EQ(show(text, specials.partition(text, Specials::kText, {})), "[<x>](1)[<x>]");
  EXPECT_EQ(show(text, specials.partition(text, Specials::kParse, {})), "(0)(2)");
}

TEST(SpecialTokens, StayTextWhereTheyTouchAUserRange) {
  const std::vector<SpecialToken> tokens{{{0}, "<x>"}, {{1}, "<x><x>"}};
  const SpecialTokens specials(tokens);
  const std::string_view text = "<x><x><x>";
  EXPECT_EQ(partition(specials, text, {{0, 3}}), "[<x>](1)");
  EXPECT_EQ(partition(specials, text, {{3, 6}}), "(0)[<x>](0)");
  EXPECT_EQ(partition(specials, text, {{4, 5}}), "(0)[<x>](0)") << "inside";
  EXPECT_EQ(partition(specials, text, {{2, 4}}), "[<x><x>](0)") << "half of two";
  EXPECT_EQ(partition(specials, text, {{0, 1}, {8, 9}}), "[<x>](0)[<x>]");
  EXPECT_EQ(partition(specials, text, {{0, 9}}), "[<x><x><x>]");
}

TEST(SpecialTokens, AreRecognisedInUserRangesWhereTheyCanForgeNothing) {
  const std::vector<SpecialToken> tokens{{{0}, "   ", Recognised::kEverywhere}, {{1}, "<x>"}};
  const SpecialTokens specials(tokens);
  EXPECT_EQ(partition(specials, "a   <x>", {{0, 7}}), "[a](0)[<x>]");
}

// llama.cpp's way: token after token, longest first, each cutting what text is left.
std::vector<Fragment> one_token_after_another(std::string_view text,
                                              std::vector<SpecialToken> tokens) {
  std::sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
  std::vector<Fragment> fragments;
  if (!text.empty()) fragments.push_back({{0, text.size()}, kNoToken});
  for (const SpecialToken& token : tokens) {
    std::vector<Fragment> cut;
    for (Fragment f : fragments) {
      while (!f.token.exists()) {
        const size_t at = text.substr(0, f.range.end).find(token.text, f.range.begin);
        if (at == std::string_view::npos) break;
        if (at > f.range.begin) cut.push_back({{f.range.begin, at}, kNoToken});
        cut.push_back({{at, at + token.text.size()}, token.id});
        f.range.begin = at + token.text.size();
      }
      if (f.token.exists() || f.range.begin < f.range.end) cut.push_back(f);
    }
    fragments = cut;
  }
  return fragments;
}

TEST(SpecialTokens, PartitionAsOneTokenAfterAnotherWould) {
  RandomStream random(3);
  const auto random_text = [&](uint64_t longest) {
    std::string text;
    for (uint64_t n = random.below(longest + 1); n > 0; --n) text += "ab"[random.below(2)];
    return text;
  };
  for (int round = 0; round < 5'000; ++round) {
    std::vector<std::string> words;
    for (int i = 0; i < 6; ++i) {
      const std::string word = random_text(5);
      if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) {
        words.push_back(word);
      }
    }
    std::vector<SpecialToken> tokens;
    for (size_t i = 0; i < words.size(); ++i) tokens.push_back({{static_cast<int>(i)}, words[i]});
    const std::string text = random_text(30);
    ASSERT_EQ(show(text, SpecialTokens(tokens).partition(text, Specials::kParse, {})),
              show(text, one_token_after_another(text, tokens)))
        << "round " << round << " text " << text;
  }
}

}  // namespace
}  // namespace godwit::tokenizer
