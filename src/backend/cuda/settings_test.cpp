#include "backend/cuda/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace godwit::cuda {
namespace {

TEST(CudaSettings, AreTheFastestWithoutAWord) {
  const Result<CudaSettings> settings = settings_from_environment();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->executor, ExecutorChoice::kBest);
  EXPECT_EQ(settings->overlap, Overlap::kProgrammatic);
  EXPECT_EQ(settings->capture, Capture::kGraph);
  EXPECT_EQ(settings->prefill, PrefillChoice::kChunks);
}

TEST(CudaSettings, FollowTheEnvironment) {
  setenv("GODWIT_CUDA_EXECUTOR", "stepwise", 1);
  setenv("GODWIT_CUDA_OVERLAP", "none", 1);
  const Result<CudaSettings> settings = settings_from_environment();
  unsetenv("GODWIT_CUDA_EXECUTOR");
  unsetenv("GODWIT_CUDA_OVERLAP");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->executor, ExecutorChoice::kStepwise);
  EXPECT_EQ(settings->overlap, Overlap::kNone);
  EXPECT_EQ(settings->capture, Capture::kGraph);
}

TEST(CudaSettings, NameTheVariableThatIsWrong) {
  setenv("GODWIT_CUDA_CAPTURE", "film", 1);
  const Result<CudaSettings> settings = settings_from_environment();
  unsetenv("GODWIT_CUDA_CAPTURE");
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().message, "GODWIT_CUDA_CAPTURE is 'film'; expected none or graph");
}

}  // namespace
}  // namespace godwit::cuda
