#include "os/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "testing/temporary_folder.h"

namespace godwit::os {
namespace {

void never_called() { FAIL() << "nobody holds the lock"; }

class FileLockTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.lock";
};

// Two descriptors of one process exclude each other like two processes.
TEST_F(FileLockTest, OneHolderAtATime) {
  std::atomic<bool> waited = false;
  std::atomic<bool> released = false;
  std::thread other;
  {
    const Result<FileLock> first = FileLock::acquire(path_, never_called, {});
    ASSERT_TRUE(first);
    other = std::thread([&] {
      EXPECT_TRUE(FileLock::acquire(path_, [&] { waited = true; }, {}));
      EXPECT_TRUE(released);
    });
    while (!waited) std::this_thread::yield();
    released = true;
  }
  other.join();
}

TEST_F(FileLockTest, WaitingCanBeStopped) {
  const Result<FileLock> first = FileLock::acquire(path_, never_called, {});
  ASSERT_TRUE(first);
  int asked = 0;
  const Result<FileLock> second = FileLock::acquire(path_, [] {}, [&] { return ++asked > 1; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "interrupted");
}

TEST_F(FileLockTest, AFolderThatIsNotThereIsAnError) {
  const Result<FileLock> lock =
      FileLock::acquire(folder_.path() / "none" / "x.lock", never_called, {});
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message.find("none/x.lock"), std::string::npos);
}

}  // namespace
}  // namespace godwit::os
