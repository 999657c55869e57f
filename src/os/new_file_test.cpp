// A new file is there whole, or the old one is.
#include "os/new_file.h"

#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace godwit::os {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(NewFile, AppearsOnlyWhenCommitted) {
  const testing::TemporaryFolder folder;
  folder.write("state", bytes_of("old"));
  {
    Result<NewFile> file = NewFile::create(folder.file("state"));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(bytes_of("....new ")));
    ASSERT_TRUE(file->append(bytes_of("content")));
    ASSERT_TRUE(file->overwrite(0, bytes_of("The ")));
    EXPECT_EQ(folder.read("state"), "old");
    ASSERT_TRUE(file->commit());
  }
  EXPECT_EQ(folder.read("state"), "The new content");
  EXPECT_EQ(folder.n_files(), 1u);
}

TEST(NewFile, LeavesNothingWhenItIsGivenUp) {
  const testing::TemporaryFolder folder;
  folder.write("state", bytes_of("old"));
  {
    Result<NewFile> file = NewFile::create(folder.file("state"));
    ASSERT_TRUE(file && file->append(bytes_of("half")));
  }
  EXPECT_EQ(folder.read("state"), "old");
  EXPECT_EQ(folder.n_files(), 1u);
}

TEST(NewFile, SaysWhereItCannotBe) {
  const testing::TemporaryFolder folder;
  const Result<NewFile> file = NewFile::create(folder.file("missing") / "state");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("missing/state"), std::string::npos);
  EXPECT_NE(file.error().message.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace godwit::os
