#include "hub/choose.h"

#include <gtest/gtest.h>

namespace godwit::hub {
namespace {

std::vector<RepoFile> repo(std::initializer_list<const char*> paths) {
  std::vector<RepoFile> files;
  for (const char* path : paths) files.push_back({.path = path, .bytes = 1});
  return files;
}

// The path of the first file chosen, or the error.
std::string chosen(const std::vector<RepoFile>& files, std::string_view quant) {
  const auto result = choose_files(files, quant);
  return result ? result->front().path : "error: " + result.error().message;
}

TEST(Choose, TheDefaultIsQ4KmThenQ8ThenTheFirst) {
  EXPECT_EQ(chosen(repo({"a-BF16.gguf", "a-Q4_K_M.gguf", "a-Q8_0.gguf"}), ""), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen(repo({"a-BF16.gguf", "a-Q4_0.gguf", "a-Q8_0.gguf"}), ""), "a-Q8_0.gguf");
  EXPECT_EQ(chosen(repo({"a-BF16.gguf", "a-Q4_0.gguf"}), ""), "a-BF16.gguf");
  EXPECT_EQ(chosen(repo({"ggml-model.gguf"}), ""), "ggml-model.gguf");
}

TEST(Choose, UpperAndLowerCaseAreAlike) {
  EXPECT_EQ(chosen(repo({"a-q4_k_m.gguf", "a-q8_0.gguf"}), ""), "a-q4_k_m.gguf");
  EXPECT_EQ(chosen(repo({"a-Q5_K_S.gguf", "a-Q5_K_M.gguf"}), "q5_k_s"), "a-Q5_K_S.gguf");
}

TEST(Choose, WholeWordsBeatPartsOfWords) {
  EXPECT_EQ(chosen(repo({"a-BF16.gguf", "a-F16.gguf"}), "f16"), "a-F16.gguf");
  EXPECT_EQ(chosen(repo({"a-BF16.gguf"}), "f16"), "a-BF16.gguf");  // as llama.cpp finds it
  EXPECT_EQ(chosen(repo({"a-IQ4_K_M.gguf", "a.Q4_K_M.gguf"}), "Q4_K_M"), "a.Q4_K_M.gguf");
  // A longer name is another quantisation.
  EXPECT_NE(chosen(repo({"a-Q4_K_M.gguf"}), "Q4_K").find("there is no Q4_K"), std::string::npos);
}

TEST(Choose, FoldersCount) {
  EXPECT_EQ(chosen(repo({"BF16/a-BF16.gguf", "Q8_0/a-Q8_0.gguf"}), "BF16"), "BF16/a-BF16.gguf");
}

TEST(Choose, HelpersOfAModelAreNotChosen) {
  EXPECT_EQ(chosen(repo({"imatrix-Q4_K_M.gguf", "mmproj-a-Q4_K_M.gguf", "mtp-a-Q4_K_M.gguf",
                         "z-Q4_K_M.gguf", "z-Q4_K_M.safetensors"}),
                   "Q4_K_M"),
            "z-Q4_K_M.gguf");
  EXPECT_NE(chosen(repo({"mmproj-a-Q4_K_M.gguf", "x.bin"}), "").find("no GGUF model"),
            std::string::npos);
}

TEST(Choose, SeveralThatFitAreNamed) {
  const std::string error = chosen(repo({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}), "q4_k_m");
  EXPECT_NE(error.find("a-Q4_K_M.gguf, b-Q4_K_M.gguf"), std::string::npos) << error;
  EXPECT_NE(error.find("--hf-file"), std::string::npos) << error;
}

TEST(Choose, MissingOnesAreAnsweredByWhatThereIs) {
  const std::string error = chosen(repo({"a-Q8_0.gguf", "a-Q6_K.gguf", "mmproj.gguf"}), "Q2_K");
  EXPECT_EQ(error, "error: there is no Q2_K among its models: a-Q8_0.gguf, a-Q6_K.gguf");
}

TEST(Choose, LongListsAreCutShort) {
  std::vector<RepoFile> files;
  for (int i = 0; i < 500; ++i) files.push_back({.path = fmt::format("m{}.gguf", i)});
  const std::string error = chosen(files, "Q2_K");
  EXPECT_LT(error.size(), 500U);
  EXPECT_NE(error.find("and 480 more"), std::string::npos) << error;
}

TEST(Choose, ASplitModelIsAllItsFilesInOrder) {
  const auto files = repo({"a-Q8_0-00001-of-00003.gguf", "a-Q8_0-00002-of-00003.gguf",
                           "a-Q8_0-00003-of-00003.gguf", "b-Q8_0-00001-of-00002.gguf"});
  const auto shards = choose_named(files, "a-Q8_0-00001-of-00003.gguf");
  ASSERT_TRUE(shards);
  ASSERT_EQ(shards->size(), 3U);
  EXPECT_EQ(shards->at(2).path, "a-Q8_0-00003-of-00003.gguf");
  const auto broken = choose_named(files, "b-Q8_0-00001-of-00002.gguf");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("'b-Q8_0-00002-of-00002.gguf' is missing"),
            std::string::npos);
}

TEST(Choose, ByNameAnyFile) {
  const auto files = repo({"README.md", "a.gguf"});
  EXPECT_EQ(choose_named(files, "README.md")->front().path, "README.md");
  EXPECT_NE(choose_named(files, "b").error().message.find("a.gguf"), std::string::npos);
}

TEST(QuantOf, IsTheLastWordOfTheName) {
  EXPECT_EQ(quant_of("x/Name-1B-q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(quant_of("Name.Q8_0-00001-of-00002.gguf"), "Q8_0");
  EXPECT_EQ(quant_of("model.gguf"), "");
  EXPECT_EQ(quant_of("a-.gguf"), "");
  EXPECT_EQ(quant_of("a-Q8_0.bin"), "");
}

}  // namespace
}  // namespace godwit::hub
