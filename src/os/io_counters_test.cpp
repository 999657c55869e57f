#include "os/io_counters.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "testing/temporary_folder.h"

namespace godwit {
namespace {

std::optional<IoCounters> parsed(const std::string& text) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.file("io")) << text;
  return io_counters(folder.file("io"));
}

TEST(IoCounters, TellReadsFromDeviceReads) {
  const auto counters = parsed("rchar: 4292\nwchar: 7\nsyscr: 13\nread_bytes: 4096\n");
  ASSERT_TRUE(counters);
  EXPECT_EQ(*counters, (IoCounters{.read_bytes = 4292, .device_bytes = 4096}));
}

TEST(IoCounters, AreAbsentWhereTheSystemDoesNotTell) {
  EXPECT_FALSE(io_counters("/nonexistent/io"));
  EXPECT_FALSE(parsed(""));
  EXPECT_FALSE(parsed("rchar: 4292\n"));
  EXPECT_FALSE(parsed("rchar: many\nread_bytes: 4096\n"));
}

TEST(IoCounters, GrowWithWhatIsRead) {
  const auto before = io_counters();
  if (!before) GTEST_SKIP() << "no /proc/self/io here";
  const testing::TemporaryFolder folder;
  std::ofstream(folder.file("data")) << std::string(100000, 'x');
  std::string text(100000, ' ');
  std::ifstream(folder.file("data"), std::ios::binary)
      .read(text.data(), static_cast<std::streamsize>(text.size()));
  EXPECT_GE(io_counters()->read_bytes, before->read_bytes + 100000);
}

}  // namespace
}  // namespace godwit
