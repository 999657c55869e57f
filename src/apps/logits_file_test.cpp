// Saved logits: the layout byte by byte, what a round trip keeps, and hostile files.
#include "apps/logits_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

constexpr LogitsShape kShape{.n_ctx = 6, .n_vocab = 5, .n_chunks = 2};  // 2 rows of 20 bytes each

void put(std::vector<std::byte>& bytes, size_t at, auto value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> sound_file() {
  std::vector<std::byte> bytes(20 + 4 * 6 * 2 + 2 * 2 * 20);
  std::memcpy(bytes.data(), "_logits_", 8);
  put(bytes, 8, int32_t{6});
  put(bytes, 12, int32_t{5});
  put(bytes, 16, int32_t{2});
  for (int32_t i = 0; i < 12; ++i) put(bytes, 20 + 4 * static_cast<size_t>(i), i % 5);
  for (size_t row = 0; row < 4; ++row) {
    const size_t at = 68 + row * 20;
    put(bytes, at, 0.5f);
    put(bytes, at + 4, -40000.0f);
    for (size_t i = 0; i < 5; ++i) put(bytes, at + 8 + 2 * i, static_cast<uint16_t>(row * 10 + i));
  }
  return bytes;
}

std::string refusal(const std::vector<std::byte>& bytes) {
  const auto file = LogitsFile::parse(bytes);
  return file ? "accepted" : file.error().message;
}

TEST(LogitsFile, ReadsItsLayout) {
  const std::vector<std::byte> bytes = sound_file();
  const auto file = LogitsFile::parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->shape().rows_per_chunk(), 2u);
  EXPECT_EQ(file->shape().row_bytes(), 20u);
  EXPECT_EQ(file->tokens(1).front().value, 1);
  const auto row = file->row(1, 1);
  ASSERT_TRUE(row) << row.error().message;
  std::vector<float> values(5);
  row->unpack(values);
  EXPECT_EQ(values[4], -40000.0f + 0.5f * 34);
}

TEST(LogitsFile, RefusesOtherFilesAndOtherSizes) {
  std::vector<std::byte> bytes = sound_file();
  bytes.pop_back();
  EXPECT_EQ(refusal(bytes), "2 chunks of 6 tokens over 5 entries take 148 bytes, the file has 147");
  bytes.resize(19);
  EXPECT_NE(refusal(bytes).find("not a file of saved logits"), std::string::npos);
  bytes = sound_file();
  bytes[0] = std::byte{'X'};
  EXPECT_NE(refusal(bytes).find("expected '_logits_'"), std::string::npos);
}

TEST(LogitsFile, RefusesCountsThatCannotBe) {
  std::vector<std::byte> bytes = sound_file();
  put(bytes, 8, int32_t{-1});
  EXPECT_EQ(refusal(bytes), "n_ctx is -1 at byte 8; expected 4 to 1073741824");
  bytes = sound_file();
  put(bytes, 12, int32_t{0});
  EXPECT_EQ(refusal(bytes), "n_vocab is 0 at byte 12; expected 2 to 1073741824");
  bytes = sound_file();
  for (const size_t at : {8u, 12u, 16u}) put(bytes, at, int32_t{1 << 30});
  EXPECT_NE(refusal(bytes).find("more than 2^64"), std::string::npos);
}

TEST(LogitsFile, RefusesTokensOutsideTheVocabulary) {
  std::vector<std::byte> bytes = sound_file();
  put(bytes, 24, int32_t{5});
  EXPECT_EQ(refusal(bytes), "token 5 at byte 24 is outside the vocabulary of 5");
  put(bytes, 24, int32_t{-2});
  EXPECT_EQ(refusal(bytes), "token -2 at byte 24 is outside the vocabulary of 5");
}

TEST(LogitsFile, RefusesRowsThatAreNoLogProbabilities) {
  for (const auto& [scale, least] :
       {std::pair{NAN, -1.0f}, {0.1f, NAN}, {0.1f, -INFINITY}, {-0.1f, -1.0f}, {0.1f, -1.0f}}) {
    std::vector<std::byte> bytes = sound_file();
    put(bytes, 68 + 20, scale);
    put(bytes, 68 + 24, least);
    const auto file = LogitsFile::parse(bytes);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->row(0, 0));
    EXPECT_FALSE(file->row(0, 1)) << scale << " " << least;
  }
}

TEST(LogitsFile, PacksWhatItUnpacks) {
  const std::vector<float> logits = {3.0f, -2.0f, 9.5f, 9.25f, -20.0f};
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  const double log_sum = std::log(sum);
  std::vector<std::byte> packed(kShape.row_bytes(), std::byte{0xff});
  pack_log_probs(logits, log_sum, packed);
  PackedLogProbs row;
  std::memcpy(&row.scale, packed.data(), 4);
  std::memcpy(&row.least, packed.data() + 4, 4);
  row.steps = std::span(packed).subspan(8, 10);
  std::vector<float> values(5);
  row.unpack(values);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(values[i], static_cast<double>(logits[i]) - log_sum, 16.0 / 65535) << i;
  }
  // Less than e^-16 of the likeliest is cut there.
  EXPECT_NEAR(values[4], 9.5 - 16 - log_sum, 1e-3);
  EXPECT_EQ(packed[18], std::byte{0});  // an odd vocabulary is padded, always with the same
}

TEST(LogitsFile, PacksEqualLogits) {
  const std::vector<float> logits(5, 7.0f);
  std::vector<std::byte> packed(kShape.row_bytes());
  pack_log_probs(logits, 7.0 + std::log(5.0), packed);
  PackedLogProbs row;
  std::memcpy(&row.scale, packed.data(), 4);
  std::memcpy(&row.least, packed.data() + 4, 4);
  row.steps = std::span(packed).subspan(8, 10);
  EXPECT_EQ(row.scale, 0.0f);
  std::vector<float> values(5);
  row.unpack(values);
  EXPECT_NEAR(values[3], -std::log(5.0), 1e-6);
}

TEST(LogitsFile, WritesWhatItReads) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "base.logits").string();
  const std::vector<std::byte> expected = sound_file();
  std::vector<TokenId> tokens(12);
  std::memcpy(tokens.data(), expected.data() + 20, 48);
  auto writer = LogitsWriter::create(path, kShape, tokens);
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(writer->write(std::span(expected).subspan(68)));
  ASSERT_TRUE(writer->close());
  std::ifstream in(path, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
}

TEST(LogitsFile, SaysWhatCannotBeWritten) {
  const std::vector<TokenId> tokens(12, TokenId{0});
  const auto missing = LogitsWriter::create("/no/such/folder/x", kShape, tokens);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "cannot write '/no/such/folder/x'");
}

}  // namespace
}  // namespace godwit::apps
