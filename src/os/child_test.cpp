#include "os/child.h"

#include <gtest/gtest.h>

#include <vector>

namespace godwit::os {
namespace {

Result<int> run(std::vector<std::string> command) {
  return run_child(command, ChildOutput::kHidden);
}

TEST(Child, GivesTheExitCode) {
  EXPECT_EQ(run({"true"}).value(), 0);
  EXPECT_EQ(run({"sh", "-c", "exit 7"}).value(), 7);
}

TEST(Child, PassesArgumentsUntouched) {
  // A shell in between would split the words or expand the dollar.
  EXPECT_EQ(run({"sh", "-c", "test \"$1\" = 'a  $HOME *'", "sh", "a  $HOME *"}).value(), 0);
}

TEST(Child, NamesAProgramThatDoesNotExist) {
  const Result<int> result = run({"godwit-no-such-program"});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("godwit-no-such-program"), std::string::npos);
}

TEST(Child, ReportsASignal) {
  const Result<int> result = run({"sh", "-c", "kill -9 $$"});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("signal 9"), std::string::npos);
}

constexpr size_t kMiB = size_t{1} << 20;

Result<ChildAnswer> ask(std::vector<std::string> command, size_t max_bytes) {
  return ask_child(command, max_bytes);
}

TEST(Child, AnswersOnStandardOutputAndComplainsInLines) {
  const auto answer =
      ask({"sh", "-c", "echo one; echo a >&2; echo two; printf 'b\n\n' >&2; exit 3"}, kMiB);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->exit_code, 3);
  EXPECT_EQ(answer->out, "one\ntwo\n");
  EXPECT_EQ(answer->last_error_line, "b");
}

TEST(Child, LongOutputOnBothStreamsDoesNotBlock) {
  const auto answer = ask(
      {"sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; echo end >&2"}, kMiB);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->out.size(), 1000000u);
  EXPECT_TRUE(answer->last_error_line.ends_with("end"));
  EXPECT_LT(answer->last_error_line.size(), size_t{64} << 10);
}

TEST(Child, EndlessOutputIsEnded) {
  const auto answer = ask({"sh", "-c", "while :; do echo more; done"}, 1000);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("more than 1000 bytes"), std::string::npos);
}

TEST(Child, AnswersWithNothing) {
  const auto answer = ask({"cat"}, kMiB);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out, "");
  EXPECT_EQ(answer->last_error_line, "");
  EXPECT_FALSE(ask({"godwit-no-such-program"}, kMiB));
}

TEST(Child, KeepsStandardOutputForAnswers) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const std::vector<std::string> command{"echo", "progress"};
  ASSERT_TRUE(run_child(command, ChildOutput::kShown).has_value());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "progress\n");
}

}  // namespace
}  // namespace godwit::os
