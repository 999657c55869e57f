#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace godwit::engine {
namespace {

struct Streamed {
  std::string text;
  bool stopped = false;

  bool operator==(const Streamed&) const = default;
};

// By definition: up to the longest stop that ends at the first place where any does.
Streamed whole(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

Streamed streamed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings stream(stops);
  Streamed result;
  for (const std::string& piece : pieces) result.text += stream.push(piece);
  result.text += stream.finish();
  result.stopped = stream.stopped();
  return result;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}

TEST(StopStrings, CutsBeforeAStopWithinAPiece) {
  EXPECT_EQ(streamed({"END"}, {"one END two"}), (Streamed{"one ", true}));
}

TEST(StopStrings, FindsAStopAcrossPieces) {
  EXPECT_EQ(streamed({"END"}, {"one E", "N", "D two"}), (Streamed{"one ", true}));
}

TEST(StopStrings, FindsAStopAtTheVeryBeginningAndTheVeryEnd) {
  EXPECT_EQ(streamed({"END"}, {"END"}), (Streamed{"", true}));
  EXPECT_EQ(streamed({"END"}, {"text", "END"}), (Streamed{"text", true}));
}

TEST(StopStrings, ShowsAtOnceWhatCannotBeginAStop) {
  StopStrings stream({"END"});
  EXPECT_EQ(stream.push("text"), "text");
  EXPECT_EQ(stream.push("more E"), "more ");
  EXPECT_EQ(stream.push("N"), "");
  EXPECT_EQ(stream.push("T"), "ENT");
  EXPECT_FALSE(stream.stopped());
}

TEST(StopStrings, LetsHeldTextGoAtTheEnd) {
  EXPECT_EQ(streamed({"END"}, {"text EN"}), (Streamed{"text EN", false}));
}

TEST(StopStrings, SaysNothingAfterAStop) {
  StopStrings stream({"END"});
  EXPECT_EQ(stream.push("aENDb"), "a");
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StopStrings, RestartsWithinItself) {
  // After "aa" fails to go on as "aab", its second letter may still begin one.
  EXPECT_EQ(streamed({"aab"}, bytes_of("aaab")), (Streamed{"a", true}));
  EXPECT_EQ(streamed({"abab!"}, bytes_of("ababab!")), (Streamed{"ab", true}));
}

TEST(StopStrings, TakesTheEarliestOfSeveral) {
  EXPECT_EQ(streamed({"two", "one"}, {"zero one two"}), (Streamed{"zero ", true}));
  EXPECT_EQ(streamed({"ab", "b"}, {"xab"}), (Streamed{"x", true}));
}

TEST(StopStrings, AStopWithinAnotherCountsAsSoonAsItIsComplete) {
  EXPECT_EQ(streamed({"abcde", "bcd"}, bytes_of("abcde")), (Streamed{"a", true}));
  EXPECT_EQ(streamed({"abcde", "bcd"}, {"abcde"}), (Streamed{"a", true}));
}

TEST(StopStrings, IgnoresEmptyStops) {
  EXPECT_EQ(streamed({"", "END"}, {"text"}), (Streamed{"text", false}));
  EXPECT_EQ(streamed({""}, {"text"}), (Streamed{"text", false}));
  EXPECT_EQ(streamed({}, {"text"}), (Streamed{"text", false}));
}

// Small alphabets make overlaps common. Whatever the chunks, text and verdict are the same.
TEST(StopStrings, ChunkBordersDoNotMatter) {
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    RandomStream random(seed);
    const auto draw = [&](size_t n) { return static_cast<size_t>(random.below(n)); };
    const auto word = [&](size_t most) {
      std::string text;
      for (size_t i = draw(most + 1); i > 0; --i) text += static_cast<char>('a' + draw(2));
      return text;
    };
    std::vector<std::string> stops;
    for (size_t i = draw(4); i > 0; --i) stops.push_back(word(5));
    const std::string text = word(20);

    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = draw(4);  // empty pieces too
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    ASSERT_EQ(streamed(stops, pieces), whole(stops, text)) << "seed " << seed;
    ASSERT_EQ(streamed(stops, {text}), whole(stops, text)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace godwit::engine
