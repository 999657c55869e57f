// Windows as llama-perplexity cuts a text; the expected figures are its rules worked by hand.
#include "apps/perplexity_windows.h"

#include <gtest/gtest.h>

namespace godwit::apps {
namespace {

TEST(PerplexityWindows, LieSideBySideAndScoreTheSecondHalf) {
  const auto windows = plan_windows({.n_tokens = 2100, .n_ctx = 512});
  ASSERT_TRUE(windows) << windows.error().message;
  ASSERT_EQ(windows->size(), 4u);  // the last 52 tokens fill no window
  EXPECT_EQ((*windows)[3].begin, 1536u);
  EXPECT_EQ((*windows)[3].length, 512u);
  EXPECT_EQ((*windows)[3].first, 256u);
  EXPECT_EQ((*windows)[3].n_scored(), 255u);
  EXPECT_EQ(plain_scored(512), 255u);
  EXPECT_TRUE((*windows)[3].begins_with_bos);
}

TEST(PerplexityWindows, AnOddContextScoresWhatFollowsItsMiddle) {
  const auto windows = plan_windows({.n_tokens = 14, .n_ctx = 7});
  ASSERT_TRUE(windows);
  EXPECT_EQ(windows->front().first, 3u);
  EXPECT_EQ(windows->front().n_scored(), plain_scored(7));
  EXPECT_EQ(plain_scored(7), 3u);
}

TEST(PerplexityWindows, OverlapWithAStride) {
  // 512 + 128 / 2 = 576 positions, in steps of 256: 768. ceil((2000 - 768) / 128) = 10.
  EXPECT_EQ(window_length(512, 128), 768u);
  const auto windows = plan_windows({.n_tokens = 2000, .n_ctx = 512, .stride = 128});
  ASSERT_TRUE(windows);
  ASSERT_EQ(windows->size(), 10u);
  EXPECT_EQ((*windows)[9].begin, 1152u);
  EXPECT_LE((*windows)[9].begin + (*windows)[9].length, 2000u);
  EXPECT_EQ((*windows)[9].first, 639u);
  EXPECT_EQ((*windows)[9].n_scored(), 128u);
  EXPECT_FALSE((*windows)[9].begins_with_bos);
}

TEST(PerplexityWindows, AreAtMostSoMany) {
  EXPECT_EQ(plan_windows({.n_tokens = 4096, .n_ctx = 512, .n_chunks = 3})->size(), 3u);
  EXPECT_EQ(plan_windows({.n_tokens = 4096, .n_ctx = 512, .n_chunks = 99})->size(), 8u);
}

TEST(PerplexityWindows, RefuseWhatCannotBe) {
  const auto message = [](const WindowRequest& request) {
    const auto windows = plan_windows(request);
    return windows ? std::string("accepted") : windows.error().message;
  };
  EXPECT_EQ(message({.n_tokens = 1023, .n_ctx = 512}),
            "perplexity: the text has 1023 tokens; windows of 512 need at least 1024");
  EXPECT_EQ(message({.n_tokens = 9, .n_ctx = 3}),
            "perplexity: a context of 3 tokens; expected at least 4 (-c)");
  EXPECT_EQ(message({.n_tokens = 99999, .n_ctx = 512, .stride = 767}), "accepted");
  EXPECT_EQ(message({.n_tokens = 99999, .n_ctx = 16, .stride = 256}),
            "perplexity: a stride of 256 leaves no context in windows of 256 tokens");
  EXPECT_EQ(message({.n_tokens = 2048, .n_ctx = 512, .n_chunks = 0}),
            "perplexity: nothing to do in 0 chunks");
}

}  // namespace
}  // namespace godwit::apps
