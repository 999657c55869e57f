// What prompt lookup proposes, against a search that reads the whole history.
#include "engine/draft_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace godwit::engine {
namespace {

std::vector<TokenId> ids(std::string_view letters) {
  std::vector<TokenId> tokens;
  for (const char c : letters) tokens.push_back({c});
  return tokens;
}

std::string letters(const Draft& draft) {
  std::string text;
  for (const TokenId token : draft.tokens) text.push_back(static_cast<char>(token.value));
  return text;
}

TEST(DraftLookup, ProposesWhatFollowedTheLongestMatch) {
  DraftLookup lookup(64);
  // "cd" stood last before "Y", "bcd" before "X".
  const Draft draft = lookup.propose(ids("abcdX__cdY__zbcd"), 3);
  EXPECT_EQ(draft.match_length, 3u);
  EXPECT_EQ(letters(draft), "X__");
}

TEST(DraftLookup, TakesTheLatestOfEqualMatches) {
  DraftLookup lookup(64);
  EXPECT_EQ(letters(lookup.propose(ids("abcd1abcd2abcd"), 1)), "2");
}

TEST(DraftLookup, FindsNothingInTextWithoutRepetition) {
  DraftLookup lookup(64);
  EXPECT_TRUE(lookup.propose(ids("abcdefgh"), 8).tokens.empty());
  EXPECT_EQ(lookup.propose(ids("abcdefgh"), 8).match_length, 0u);
  EXPECT_TRUE(DraftLookup(64).propose({}, 8).tokens.empty());
  EXPECT_TRUE(DraftLookup(64).propose(ids("a"), 8).tokens.empty());
}

TEST(DraftLookup, OneEqualTokenIsNoMatch) {
  DraftLookup lookup(64);
  EXPECT_TRUE(lookup.propose(ids("abcda"), 8).tokens.empty());
}

TEST(DraftLookup, GoesOnRoundALoop) {
  DraftLookup lookup(64);
  EXPECT_EQ(letters(lookup.propose(ids("abcabc"), 8)), "abcabcab");
  EXPECT_EQ(letters(DraftLookup(64).propose(ids("zzzz"), 3)), "zzz");
}

TEST(DraftLookup, ProposesNoMoreThanAsked) {
  DraftLookup lookup(64);
  EXPECT_EQ(letters(lookup.propose(ids("abcdefabc"), 2)), "de");
  EXPECT_TRUE(lookup.propose(ids("abcdefabc"), 0).tokens.empty());
}

// By reading everything.
Draft expected_draft(std::span<const TokenId> history, size_t n_max) {
  Draft draft;
  for (size_t length = std::min(DraftLookup::kMaxMatch, history.size());
       length >= DraftLookup::kMinMatch; --length) {
    for (size_t next = history.size() - 1; next >= length; --next) {
      if (!std::ranges::equal(history.subspan(next - length, length), history.last(length))) {
        continue;
      }
      draft.match_length = length;
      std::vector<TokenId> text(history.begin(), history.end());
      for (size_t i = 0; i < n_max; ++i) text.push_back(text[next + i]);
      draft.tokens.assign(text.end() - static_cast<std::ptrdiff_t>(n_max), text.end());
      return draft;
    }
  }
  return draft;
}

TEST(DraftLookup, AgreesWithASearchThroughTheWholeHistory) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed);
    std::vector<TokenId> history;
    DraftLookup lookup(400);
    while (history.size() < 400) {
      // Several at once, as an accepted draft or a prompt adds them.
      for (uint64_t n = 1 + random.below(5); n > 0; --n) {
        history.push_back({static_cast<int32_t>(random.below(2 + seed))});
      }
      const Draft draft = lookup.propose(history, 6);
      const Draft expected = expected_draft(history, 6);
      // Another run may have taken a slot: then a shorter match or none, never a wrong one.
      if (draft.match_length != expected.match_length) {
        EXPECT_LT(draft.match_length, expected.match_length);
        continue;
      }
      EXPECT_EQ(draft.tokens, expected.tokens) << "seed " << seed << " at " << history.size();
      found += draft.match_length > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(found, 1500u);
}

}  // namespace
}  // namespace godwit::engine
