#include "os/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "testing/temporary_folder.h"

namespace godwit {
namespace {

std::vector<std::byte> pattern(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

TEST(MappedFile, ShowsTheFileByteForByte) {
  const testing::TemporaryFolder folder;
  for (const size_t n : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100000}}) {
    const auto bytes = pattern(n);
    const auto file = MappedFile::open(folder.write("f", bytes));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_TRUE(std::ranges::equal(file->bytes(), bytes)) << n;
  }
}

TEST(MappedFile, SurvivesMovesAndTheRemovalOfTheFile) {
  const testing::TemporaryFolder folder;
  const auto bytes = pattern(10000);
  auto first = MappedFile::open(folder.write("f", bytes));
  auto second = MappedFile::open(folder.write("g", pattern(5)));
  ASSERT_TRUE(first.has_value() && second.has_value());
  std::filesystem::remove(folder.file("f"));
  MappedFile moved(std::move(*first));
  EXPECT_TRUE(first->bytes().empty());  // NOLINT(bugprone-use-after-move): what a move leaves
  *second = std::move(moved);
  EXPECT_TRUE(std::ranges::equal(second->bytes(), bytes));
}

TEST(MappedFile, DiscardedPagesReadTheSameAgain) {
  const testing::TemporaryFolder folder;
  const auto bytes = pattern(64 * 1024 + 100);
  const auto file = MappedFile::open(folder.write("f", bytes));
  ASSERT_TRUE(file.has_value());
  const auto mapped = file->bytes();
  for (const auto range : {mapped, mapped.subspan(1, 10), mapped.subspan(5000, 20000),
                           mapped.last(150), mapped.first(0)}) {
    file->discard(range);
    EXPECT_TRUE(std::ranges::equal(mapped, bytes));
  }
}

void expect_refused(const std::filesystem::path& path, std::string_view message) {
  const auto file = MappedFile::open(path);
  ASSERT_FALSE(file.has_value());
  EXPECT_NE(file.error().message.find(message), std::string::npos) << file.error().message;
  EXPECT_NE(file.error().message.find(path.string()), std::string::npos) << file.error().message;
}

TEST(MappedFile, SaysWhyAFileCannotBeOpened) {
  const testing::TemporaryFolder folder;
  expect_refused(folder.file("absent"), "No such file");
  expect_refused(folder.path(), "is a directory");
  expect_refused(folder.write("empty", {}), "is empty");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_refused(folder.file("pipe"), "is a device, pipe or socket");
  if (::geteuid() != 0) {  // root may read everything
    const auto locked = folder.write("locked", pattern(5));
    ASSERT_EQ(::chmod(locked.c_str(), 0), 0);
    expect_refused(locked, "Permission denied");
  }
}

}  // namespace
}  // namespace godwit
