#include "os/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "testing/temporary_folder.h"

namespace godwit {
namespace {

// A directory that stands in for "/": /proc and /sys as a test wants them.
class FakeRoot {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder_.file(name).parent_path());
    std::ofstream(folder_.file(name)) << text;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

constexpr const char* kMeminfo = "MemTotal: 2000 kB\nMemFree: 5 kB\nMemAvailable:     1000 kB\n";

TEST(AlignedBuffer, IsZeroedAlignedAndWritableToTheLastByte) {
  for (const size_t alignment : {size_t{64}, size_t{4096}, size_t{65536}, size_t{2} << 20}) {
    for (const size_t size : {size_t{1}, size_t{4095}, size_t{4097}, (size_t{4} << 20) + 1}) {
      Result<AlignedBuffer> buffer = AlignedBuffer::create(size, alignment);
      ASSERT_TRUE(buffer);
      ASSERT_EQ(buffer->bytes().size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % alignment, 0u);
      EXPECT_TRUE(
          std::ranges::all_of(buffer->bytes(), [](std::byte b) { return b == std::byte{}; }));
      std::memset(buffer->data(), 0xff, size);
    }
  }
}

TEST(AlignedBuffer, LargeOnesStartAtAHugePage) {
  Result<AlignedBuffer> buffer = AlignedBuffer::create(size_t{8} << 20, 64);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (size_t{2} << 20), 0u);
}

TEST(AlignedBuffer, OfNoBytesIsEmpty) {
  Result<AlignedBuffer> buffer = AlignedBuffer::create(0, 64);
  ASSERT_TRUE(buffer);
  EXPECT_TRUE(buffer->bytes().empty());
}

TEST(AlignedBuffer, SaysWhatItCouldNotAllocate) {
  for (const size_t size : {std::numeric_limits<size_t>::max(), size_t{1} << 60}) {
    const Result<AlignedBuffer> buffer = AlignedBuffer::create(size, 64);
    ASSERT_FALSE(buffer);
    EXPECT_NE(buffer.error().message.find(std::to_string(size)), std::string::npos);
  }
}

TEST(AlignedBuffer, Locks) {
  AlignedBuffer buffer = *AlignedBuffer::create(8192, 64);
  const Status locked = buffer.lock();
  EXPECT_TRUE(locked) << locked.error().message;
  EXPECT_TRUE(AlignedBuffer().lock());
}

// What a process without privileges is told; in a child, since it cannot get them back.
void refuse_to_lock() {
  AlignedBuffer buffer = *AlignedBuffer::create(size_t{1} << 20, 64);
  const rlimit low{.rlim_cur = 65536, .rlim_max = 65536};
  const bool ready = setrlimit(RLIMIT_MEMLOCK, &low) == 0 && (geteuid() != 0 || setuid(65534) == 0);
  const Status refused = buffer.lock();
  if (!ready || refused) std::exit(2);
  std::fprintf(stderr, "%s\n", refused.error().message.c_str());
  std::exit(0);
}

TEST(AlignedBufferDeathTest, SaysWhatItMayNotLockAndTheLimit) {
  if (mlock(nullptr, 4096) == 0) GTEST_SKIP() << "a sanitizer answers in mlock's place";
  EXPECT_EXIT(refuse_to_lock(), ::testing::ExitedWithCode(0),
              "cannot lock 1048576 bytes.*locked is 65536 bytes .ulimit -l");
}

TEST(AlignedBuffer, MovesWithoutCopying) {
  Result<AlignedBuffer> made = AlignedBuffer::create(100, 64);
  ASSERT_TRUE(made);
  const std::byte* const data = made->data();
  AlignedBuffer first = std::move(*made);
  AlignedBuffer second;
  second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.size(), 100u);
}

TEST(Memory, AvailableIsWhatTheSystemSaysWithoutControlGroups) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  EXPECT_EQ(available_memory_bytes(root.path()), 1000u * 1024);
}

TEST(Memory, AvailableIsWhatTheTightestGroupLeaves) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/memory.max", "500000\n");
  root.write("sys/fs/cgroup/outer/memory.current", "100000\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 400000u);
  // Cold page cache inside the group can be given up.
  root.write("sys/fs/cgroup/outer/memory.stat", "anon 7\ninactive_file 30000\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 430000u);
  // Over its limit already.
  root.write("sys/fs/cgroup/outer/memory.current", "900000\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 0u);
}

TEST(Memory, AvailableKnowsVersionOneGroups) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 200000u);
}

TEST(Memory, AvailableSurvivesNonsense) {
  const FakeRoot root;
  EXPECT_EQ(available_memory_bytes(root.path()), 0u);
  root.write("proc/meminfo", "MemAvailable:\n");
  root.write("proc/self/cgroup", "\n:\n::\n0::\nx\n0::/../..\n");
  root.write("sys/fs/cgroup/memory.max", "99999999999999999999999999\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 0u);
}

TEST(Memory, ThisMachineHasSome) { EXPECT_GT(available_memory_bytes(), uint64_t{1} << 20); }

TEST(Memory, PeakCountsTouchedPages) {
  const uint64_t before = peak_rss_bytes();
  EXPECT_GT(before, 0u);
  constexpr size_t kSize = size_t{256} << 20;
  Result<AlignedBuffer> buffer = AlignedBuffer::create(kSize, 64);
  ASSERT_TRUE(buffer);
  std::memset(buffer->data(), 1, kSize);
  EXPECT_GE(peak_rss_bytes(), kSize);
}

TEST(Memory, PeakCanBeCountedAnew) {
  constexpr size_t kSize = size_t{64} << 20;
  {
    Result<AlignedBuffer> buffer = AlignedBuffer::create(kSize, 4096);
    ASSERT_TRUE(buffer);
    std::ranges::fill(buffer->bytes(), std::byte{1});
  }
  ASSERT_GE(peak_rss_bytes(), resident_bytes() + kSize / 2);
  restart_peak_rss();
  EXPECT_LE(peak_rss_bytes(), resident_bytes() + kSize / 2);
}

}  // namespace
}  // namespace godwit
