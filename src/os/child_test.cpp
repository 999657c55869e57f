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
