#include "tokenizer/utf8_stream.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace godwit::tokenizer {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

std::string all_at_once(std::string_view bytes) {
  Utf8Stream stream;
  const std::string text = stream.push(bytes);
  return text + stream.finish();
}

TEST(Utf8Stream, PassesWholeCharactersThrough) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\n";
  EXPECT_EQ(all_at_once(text), text);
}

TEST(Utf8Stream, HoldsACharacterBackUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0"), "a");
  EXPECT_EQ(stream.push("\x9F\x98"), "");
  EXPECT_EQ(stream.push("\x80 b"), "\xF0\x9F\x98\x80 b");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesWhatNeverBecameWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xE4\xB8"), "a");
  EXPECT_EQ(stream.finish(), kBad);
  EXPECT_EQ(stream.push("b"), "b") << "a finished stream can be used again";
}

// The examples of the Unicode standard, section 3.9 (tables 3-8 to 3-11): one replacement for
// each maximal subpart of an ill-formed sequence.
TEST(Utf8Stream, ReplacesMaximalSubparts) {
  const auto bad = [](int n) {
    std::string s;
    while (n-- > 0) s += kBad;
    return s;
  };
  EXPECT_EQ(all_at_once("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), bad(8) + "A");
  EXPECT_EQ(all_at_once("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), bad(8) + "A");
  EXPECT_EQ(all_at_once("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), bad(5) + "A" + bad(2) + "B");
  EXPECT_EQ(all_at_once("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), bad(4) + "A");
}

// Bytes that meet often in real and broken UTF-8, so that random strings reach every branch.
std::string random_bytes(RandomStream& random) {
  static constexpr std::string_view kPool =
      "aZ \x7F\x80\x90\x9F\xA0\xBF\xC0\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF3\xF4\xF5\xFF";
  std::string bytes;
  const uint64_t n = random.below(24);
  for (uint64_t i = 0; i < n; ++i) bytes += kPool[random.below(kPool.size())];
  return bytes;
}

TEST(Utf8Stream, GivesTheSameTextWhateverTheChunks) {
  RandomStream random(20);
  for (int round = 0; round < 20'000; ++round) {
    const std::string bytes = random_bytes(random);
    Utf8Stream stream;
    std::string streamed;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = random.below(4);
      const std::string chunk = stream.push(std::string_view(bytes).substr(at, n));
      EXPECT_EQ(all_at_once(chunk), chunk) << "a chunk holds whole characters only";
      streamed += chunk;
      at += n;
    }
    streamed += stream.finish();
    ASSERT_EQ(streamed, all_at_once(bytes)) << "round " << round;
  }
}

}  // namespace
}  // namespace godwit::tokenizer
