#include "hub/cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hub/digest.h"
#include "hub/settings.h"
#include "testing/temporary_folder.h"

namespace godwit::hub {
namespace {

namespace fs = std::filesystem;

const std::string kRepo = "org/name";
const std::string kCommit(40, 'a');

void write(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

class CacheTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  Cache cache_{folder_.path()};
  RepoFile file_{.path = "dir/a-Q8_0.gguf", .bytes = 4, .checksum = std::string(64, 'b')};

  void store(const RepoFile& file, std::string_view content) const {
    write(cache_.blob(kRepo, file), content);
    ASSERT_TRUE(cache_.link(kRepo, kCommit, file));
  }
};

TEST_F(CacheTest, PathsAreThoseOfTheHubsOwnLibrary) {
  EXPECT_EQ(cache_.blob(kRepo, file_), folder_.path() / "models--org--name/blobs" / file_.checksum);
  EXPECT_EQ(cache_.incomplete(kRepo, file_),
            folder_.path() / "models--org--name/blobs" / (file_.checksum + ".incomplete"));
  EXPECT_EQ(cache_.snapshot(kRepo, kCommit, file_),
            folder_.path() / "models--org--name/snapshots" / kCommit / "dir/a-Q8_0.gguf");
  EXPECT_EQ(cache_.lock(kRepo, file_),
            folder_.path() / ".locks/models--org--name" / (file_.checksum + ".lock"));
}

TEST_F(CacheTest, LinksAreRelative) {
  store(file_, "data");
  const fs::path link = cache_.snapshot(kRepo, kCommit, file_);
  EXPECT_EQ(fs::read_symlink(link), "../../../blobs/" + file_.checksum);
  EXPECT_TRUE(has_size(link, 4));
  EXPECT_TRUE(cache_.link(kRepo, kCommit, file_));  // again
}

TEST_F(CacheTest, ALinkReplacesWhatIsThere) {
  const fs::path link = cache_.snapshot(kRepo, kCommit, file_);
  write(link, "an older copy");
  store(file_, "data");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(has_size(link, 4));
}

TEST_F(CacheTest, FindsTheFilesOfMain) {
  EXPECT_FALSE(cache_.find(kRepo));
  store(file_, "data");
  EXPECT_FALSE(cache_.find(kRepo));  // no ref yet
  ASSERT_TRUE(cache_.set_main(kRepo, kCommit));
  const auto listing = cache_.find(kRepo);
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->commit, kCommit);
  ASSERT_EQ(listing->files.size(), 1U);
  EXPECT_EQ(listing->files[0].path, file_.path);
  EXPECT_EQ(listing->files[0].bytes, 4U);
  EXPECT_EQ(listing->files[0].checksum, file_.checksum);
}

TEST_F(CacheTest, ToleratesWhatOthersLeaveBehind) {
  store(file_, "data");
  ASSERT_TRUE(cache_.set_main(kRepo, kCommit));
  write(cache_.repo_folder(kRepo) / "snapshots" / kCommit / "copy.gguf", "copied");
  fs::create_symlink("../../blobs/gone",
                     cache_.repo_folder(kRepo) / "snapshots" / kCommit / "gone");
  write(folder_.path() / "models--x" / "refs/main", "not a commit");
  write(folder_.path() / "models--a--..--b" / "refs/main", kCommit);
  write(folder_.path() / "version.txt", "1");
  const auto listing = cache_.find(kRepo);
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->files.size(), 2U);
  EXPECT_EQ(cache_.list().size(), 2U);
}

TEST_F(CacheTest, ListsUnfinishedFiles) {
  write(cache_.incomplete(kRepo, file_), "dat");
  const std::vector<CachedFile> all = cache_.list();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].complete);
  EXPECT_EQ(all[0].bytes, 3U);
  EXPECT_EQ(all[0].repo, kRepo);
}

TEST_F(CacheTest, AnotherBranchServesWhereThereIsNoMain) {
  store(file_, "data");
  write(cache_.repo_folder(kRepo) / "refs" / "v1", kCommit + "\n");
  ASSERT_TRUE(cache_.find(kRepo));
  EXPECT_EQ(cache_.find(kRepo)->commit, kCommit);
}

TEST(Digest, OfContentAndOfGitBlobs) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "x";
  write(path, "hello");
  EXPECT_EQ(digest_file(path, DigestKind::kSha256, {}).value(),
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  EXPECT_EQ(digest_file(path, DigestKind::kGitBlob, {}).value(),
            "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0");
  EXPECT_FALSE(digest_file(path, DigestKind::kSha256, [](uint64_t) { return false; }));
  EXPECT_FALSE(digest_file(folder.path(), DigestKind::kSha256, {}));
}

// The variables as a list of pairs.
Environment with(std::vector<std::pair<std::string, std::string>> variables) {
  return [variables = std::move(variables)](const char* name) -> std::string {
    for (const auto& [key, value] : variables) {
      if (key == name) return value;
    }
    return "";
  };
}

TEST(HubSettings, PlacesInTheOrderOfLlamaCpp) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto cache = [&] { return hub_settings({}, with(variables))->cache.string(); };
  variables = {{"HOME", "/home/u"}};
  EXPECT_EQ(cache(), "/home/u/.cache/huggingface/hub");
  variables.emplace_back("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(cache(), "/xdg/huggingface/hub");
  variables.emplace_back("HF_HOME", "~/hf");
  EXPECT_EQ(cache(), "/home/u/hf/hub");
  variables.emplace_back("HF_HUB_CACHE", "/hub");
  EXPECT_EQ(cache(), "/hub");
  variables.emplace_back("LLAMA_CACHE", "/llama");
  EXPECT_EQ(cache(), "/llama");
}

TEST(HubSettings, TheTokenOfAFlagThenOfTheEnvironmentThenOfTheFile) {
  const testing::TemporaryFolder folder;
  write(folder.path() / "token", "  hf_file \n");
  std::vector<std::pair<std::string, std::string>> variables{{"HF_HOME", folder.path().string()}};
  EXPECT_EQ(hub_settings({}, with(variables))->token, "hf_file");
  variables.emplace_back("HF_TOKEN", "hf_environment");
  EXPECT_EQ(hub_settings({}, with(variables))->token, "hf_environment");
  EXPECT_EQ(hub_settings({.token = "hf_flag"}, with(variables))->token, "hf_flag");
}

TEST(HubSettings, ATokenThatWouldEndItsHeaderIsRefusedAndNotShown) {
  const auto settings = hub_settings({}, with({{"HF_TOKEN", "hf_a\r\nX: y"}}));
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().message.find("hf_a"), std::string::npos);
}

TEST(HubSettings, NoTokenOverUnencryptedConnections) {
  const auto endpoint = [](const char* url) {
    return hub_settings({}, with({{"HF_ENDPOINT", url}, {"HF_TOKEN", "hf_t"}})).has_value();
  };
  EXPECT_TRUE(endpoint("https://hub.example"));
  EXPECT_TRUE(endpoint("http://localhost:8080"));
  EXPECT_TRUE(endpoint("http://127.0.0.1"));
  EXPECT_FALSE(endpoint("http://hub.example"));
  EXPECT_FALSE(endpoint("http://localhost.example"));
  EXPECT_FALSE(endpoint("http://localhost:x@hub.example"));
  EXPECT_FALSE(endpoint("ftp://hub.example"));
}

TEST(HubSettings, Switches) {
  for (const char* yes : {"1", "true", "YES", "on"}) {
    EXPECT_TRUE(hub_settings({}, with({{"HF_HUB_OFFLINE", yes}}))->offline) << yes;
  }
  EXPECT_FALSE(hub_settings({}, with({{"HF_HUB_OFFLINE", "0"}}))->offline);
  EXPECT_EQ(hub_settings({}, with({{"HF_ENDPOINT", "https://h//"}}))->endpoint, "https://h");
  EXPECT_EQ(hub_settings({}, with({{"HF_HUB_DOWNLOAD_TIMEOUT", "7"}}))->stall_timeout.count(), 7);
  EXPECT_EQ(hub_settings({}, with({{"HF_HUB_DOWNLOAD_TIMEOUT", "x"}}))->stall_timeout.count(), 30);
}

}  // namespace
}  // namespace godwit::hub
