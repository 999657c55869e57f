#include "hub/listing.h"

#include <gtest/gtest.h>

#include "hub/names.h"

namespace godwit::hub {
namespace {

const std::string kCommit(40, 'a');
const std::string kSha256(64, 'b');
const std::string kSha1(40, 'c');

std::string with_files(const std::string& files) {
  return fmt::format(R"({{"id":"o/n","sha":"{}","siblings":[{}],"gated":"auto"}})", kCommit, files);
}

std::string error_of(const std::string& files) {
  const auto listing = parse_listing(with_files(files));
  return listing ? "no error" : listing.error().message;
}

TEST(Listing, KnowsLargeFilesAndThoseInGit) {
  const auto listing = parse_listing(with_files(fmt::format(
      R"({{"rfilename":"z.gguf","size":7,"blobId":"{0}","lfs":{{"sha256":"{1}","size":7}}}},
         {{"rfilename":"a.md","size":3,"blobId":"{0}"}}, {{"rfilename":"unknown"}})",
      kSha1, kSha256)));
  ASSERT_TRUE(listing) << listing.error().message;
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 3U);
  EXPECT_EQ(listing->files[0].path, "a.md");
  EXPECT_EQ(listing->files[0].checksum, kSha1);
  EXPECT_EQ(listing->files[1].checksum, "");
  EXPECT_EQ(listing->files[2].path, "z.gguf");
  EXPECT_EQ(listing->files[2].bytes, 7U);
  EXPECT_EQ(listing->files[2].checksum, kSha256);
}

TEST(Listing, NamesThatLeaveTheRepositoryAreRefused) {
  for (const char* path : {"../a.gguf", "a/../../b.gguf", "/etc/passwd", "a//b", "a/", "", ".",
                           "a\\\\..\\\\b", "a\\u0000", "a\\nb"}) {
    EXPECT_NE(error_of(fmt::format(R"({{"rfilename":"{}","size":1}})", path)).find("file name"),
              std::string::npos)
        << path;
  }
}

TEST(Listing, ChecksumsAndSizesThatAreNoneAreRefused) {
  EXPECT_NE(error_of(R"({"rfilename":"a","size":1,"blobId":"../../x"})").find("checksum"),
            std::string::npos);
  EXPECT_NE(error_of(fmt::format(R"({{"rfilename":"a","size":9223372036854775808,"blobId":"{}"}})",
                                 kSha1))
                .find("bytes"),
            std::string::npos);
  // A size that is no number leaves a file that cannot be fetched.
  const auto listing = parse_listing(
      with_files(fmt::format(R"({{"rfilename":"a","size":-1,"blobId":"{}"}})", kSha1)));
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->files[0].checksum, "");
}

TEST(Listing, NonsenseIsRefused) {
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string("null"), std::string(""),
        std::string(R"({"sha":7,"siblings":[]})"), fmt::format(R"({{"sha":"{}"}})", kCommit),
        fmt::format(R"({{"sha":"{}","siblings":{{}}}})", kCommit), with_files("7"),
        std::string(200'000, '['), std::string("{\"a\":") + std::string(200'000, '[')}) {
    EXPECT_FALSE(parse_listing(text)) << text.substr(0, 80);
  }
  EXPECT_FALSE(parse_listing(std::string(kMaxListingBytes + 1, ' ')));
}

TEST(Listing, WhatIsNotNeededIsSkippedHoweverDeep) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  const auto listing = parse_listing(fmt::format(
      R"({{"cardData":{0},"sha":"{1}","siblings":[{{"rfilename":"a","x":{0}}}]}})", deep, kCommit));
  ASSERT_TRUE(listing) << listing.error().message;
  EXPECT_EQ(listing->files.size(), 1U);
}

TEST(Names, References) {
  const auto plain = parse_reference("ggml-org/SmolLM3-3B_a.GGUF");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "ggml-org/SmolLM3-3B_a.GGUF");
  EXPECT_EQ(plain->quant, "");
  EXPECT_EQ(parse_reference("a/b:Q4_K_M")->quant, "Q4_K_M");
  for (const char* text :
       {"", "a", "a/", "/b", "a/b/c", "a/b:", "a/b:Q 4", "a/b:..:x", "a/..", "../b", "a/b--c",
        "a/-b", "a/b.", "a/b?x", "https://h/a/b", "a/b@c", "a/\xc3\xa9"}) {
    EXPECT_FALSE(parse_reference(text)) << text;
  }
  EXPECT_FALSE(is_repo_id("a/" + std::string(95, 'b')));
}

TEST(Names, InnerPathsHaveLimits) {
  EXPECT_TRUE(is_inner_path("a b/..c/d..gguf"));
  EXPECT_TRUE(is_inner_path(std::string(255, 'a')));
  EXPECT_FALSE(is_inner_path(std::string(256, 'a')));
  std::string deep;
  for (int i = 0; i < 600; ++i) deep += "a/";
  EXPECT_FALSE(is_inner_path(deep + "a"));
}

}  // namespace
}  // namespace godwit::hub
