#include "net/retry.h"

#include <gtest/gtest.h>

#include <vector>

namespace godwit::net {
namespace {

using std::chrono::seconds;

constexpr RetryPolicy kQuick{.n_retries = 2, .first_delay = Milliseconds(1)};

Response answer(int status) {
  return {.end = End::kComplete, .head = {.status = status}, .problem = {}};
}
Response broken(End end) { return {.end = end, .head = {}, .problem = "broken"}; }

TEST(Backoff, DoublesUpToTheLongest) {
  const RetryPolicy policy{.first_delay = Milliseconds(500), .longest_delay = Milliseconds(3000)};
  EXPECT_EQ(backoff_delay(policy, 0, 1), Milliseconds(500));
  EXPECT_EQ(backoff_delay(policy, 1, 1), Milliseconds(1000));
  EXPECT_EQ(backoff_delay(policy, 2, 1), Milliseconds(2000));
  EXPECT_EQ(backoff_delay(policy, 3, 1), Milliseconds(3000));
  EXPECT_EQ(backoff_delay(policy, 1'000'000, 1), Milliseconds(3000));
}

TEST(Backoff, JitterTakesUpToHalf) {
  const RetryPolicy policy{.first_delay = Milliseconds(1000)};
  EXPECT_EQ(backoff_delay(policy, 0, 0), Milliseconds(500));
  EXPECT_EQ(backoff_delay(policy, 0, 0.5), Milliseconds(750));
  EXPECT_EQ(backoff_delay(policy, 0, 7), Milliseconds(1000));
}

TEST(Retries, EndAfterAsManyAsAllowed) {
  std::vector<std::string> notes;
  Retries retries(kQuick, {.note = [&](std::string_view line) { notes.emplace_back(line); }});
  EXPECT_FALSE(retries.wait_or_fail(answer(503)));
  EXPECT_FALSE(retries.wait_or_fail(broken(End::kTransient)));
  const std::optional<Failure> failure = retries.wait_or_fail(answer(503));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, 503);
  EXPECT_NE(failure->error.message.find("3 attempts"), std::string::npos);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_NE(notes[0].find("503 Service Unavailable"), std::string::npos);
  EXPECT_NE(notes[1].find("broken"), std::string::npos);
}

TEST(Retries, ProgressBeginsTheCountAnew) {
  Retries retries(kQuick, {});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(retries.wait_or_fail(broken(End::kTransient)));
    retries.note_progress();
  }
}

TEST(Retries, WhatCannotPassIsReportedAtOnce) {
  Retries retries(kQuick, {});
  for (const int status : {400, 401, 403, 404, 416, 501}) {
    ASSERT_TRUE(retries.wait_or_fail(answer(status))) << status;
  }
  EXPECT_TRUE(retries.wait_or_fail(broken(End::kPermanent)));
  EXPECT_TRUE(retries.wait_or_fail(broken(End::kRefused)));
  EXPECT_TRUE(retries.wait_or_fail(broken(End::kStopped))->stopped);
}

TEST(Retries, AServerMayAskForMoreTimeButNotForAges) {
  Retries retries({.n_retries = 2, .longest_asked = Milliseconds(1000)}, {});
  Response response = answer(429);
  response.head.retry_after = seconds(int64_t{1} << 60);
  const std::optional<Failure> failure = retries.wait_or_fail(response);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->error.message.find("come back"), std::string::npos);

  response.head.retry_after = seconds(1);
  const auto started = std::chrono::steady_clock::now();
  EXPECT_FALSE(retries.wait_or_fail(response));
  EXPECT_GE(std::chrono::steady_clock::now() - started, seconds(1));
}

TEST(Retries, WaitingCanBeStopped) {
  Retries retries({.first_delay = Milliseconds(60'000), .longest_delay = Milliseconds(60'000)},
                  {.stopped = [] { return true; }});
  const std::optional<Failure> failure = retries.wait_or_fail(answer(503));
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->stopped);
}

TEST(ContentRange, IsReadExactlyOrNotAtAll) {
  Head head;
  parse_content_range("bytes 100-199/1000", head);
  EXPECT_EQ(head.range_first, 100U);
  EXPECT_EQ(head.range_total, 1000U);
  head = {};
  parse_content_range("bytes 5-9/*", head);
  EXPECT_EQ(head.range_first, 5U);
  EXPECT_FALSE(head.range_total);
  for (const char* text :
       {"", "bytes", "bytes */1000", "bytes 9-5/10", "bytes 5-10/10", "bytes 5-9/10x",
        "items 5-9/10", "bytes -5-9/10", "bytes 5-9", "bytes 99999999999999999999-5/9"}) {
    head = {};
    parse_content_range(text, head);
    EXPECT_FALSE(head.range_first || head.range_total) << text;
  }
}

TEST(Escape, LeavesUnreservedCharactersOnly) {
  EXPECT_EQ(escape_segment("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(escape_segment("a b#?%/+\xc3\xa9"), "a%20b%23%3F%25%2F%2B%C3%A9");
  EXPECT_EQ(escape_segment(""), "");
}

}  // namespace
}  // namespace godwit::net
