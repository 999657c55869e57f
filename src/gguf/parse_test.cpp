#include "gguf/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "gguf/value.h"
#include "testing/gguf_bytes.h"
#include "testing/gguf_cases.h"
#include "testing/source_dir.h"

namespace godwit::gguf {
namespace {

using testing::GgufBytes;
using testing::GgufCase;

Result<Header> parse(std::span<const std::byte> bytes) {
  return parse_header({.bytes = bytes, .file_bytes = bytes.size(), .name = "model.gguf"});
}

// A copy without spare capacity, so that a read past the end is one past the allocation.
Result<Header> parse_tight(std::span<const std::byte> bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::ranges::copy(bytes, copy.get());
  return parse({copy.get(), bytes.size()});
}

const GgufCase& case_named(const std::vector<GgufCase>& cases, std::string_view name) {
  return *std::ranges::find(cases, name, &GgufCase::name);
}

const KeyValue& entry_named(const Header& header, std::string_view key) {
  return *std::ranges::find(header.metadata, key, &KeyValue::key);
}

TEST(GgufParse, SaysWhatIsWrongWithEveryDefect) {
  for (const GgufCase& c : testing::gguf_cases()) {
    const auto header = parse_tight(c.bytes);
    if (c.message.empty()) {
      EXPECT_TRUE(header.has_value()) << c.name << ": " << header.error().message;
      continue;
    }
    ASSERT_FALSE(header.has_value()) << c.name << " was accepted";
    const std::string& message = header.error().message;
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.name << "\n  found    " << message << "\n  expected " << c.message;
    EXPECT_TRUE(message.starts_with("gguf: ")) << message;
    EXPECT_NE(message.find("model.gguf"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(GgufParse, RefusesEveryTruncationOfAModel) {
  const auto cases = testing::gguf_cases();
  for (const auto* const name :
       {"valid_v3_two_tensors", "valid_v2_tensor", "valid_v3_every_value_type"}) {
    const auto& bytes = case_named(cases, name).bytes;
    for (size_t n = 0; n < bytes.size(); ++n) {
      const auto header = parse_tight(std::span(bytes).first(n));
      ASSERT_FALSE(header.has_value()) << name << " cut to " << n;
    }
  }
}

// Whatever one byte is changed to: an error or a header whose tensors lie inside the file.
TEST(GgufParse, SurvivesEveryChangeOfOneByte) {
  const auto cases = testing::gguf_cases();
  auto bytes = case_named(cases, "valid_v3_two_tensors").bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::byte original = bytes[i];
    for (const unsigned value : {0u, 1u, 0x7fu, 0x80u, 0xffu}) {
      bytes[i] = static_cast<std::byte>(value);
      const auto header = parse_tight(bytes);
      if (!header) continue;
      for (const Tensor& tensor : header->tensors) {
        ASSERT_GE(tensor.file_offset, header->data_offset);
        ASSERT_LE(tensor.file_offset + tensor.bytes, bytes.size()) << i << " " << value;
      }
    }
    bytes[i] = original;
  }
}

TEST(GgufParse, ReadsEveryValueTypeExactly) {
  const auto cases = testing::gguf_cases();
  const auto header = parse(case_named(cases, "valid_v3_every_value_type").bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  const auto content = [&](std::string_view key) {
    return entry_named(*header, key).value.content;
  };
  EXPECT_EQ(std::get<uint64_t>(content("u8")), 255u);
  EXPECT_EQ(std::get<int64_t>(content("i8")), -1);
  EXPECT_EQ(std::get<uint64_t>(content("u16")), 65535u);
  EXPECT_EQ(std::get<int64_t>(content("i16")), -2);
  EXPECT_EQ(std::get<uint64_t>(content("u32")), 7u);
  EXPECT_EQ(std::get<int64_t>(content("i32")), -3);
  EXPECT_EQ(std::get<double>(content("f32")), 1.5);
  EXPECT_TRUE(std::get<bool>(content("true")));
  EXPECT_FALSE(std::get<bool>(content("false")));
  EXPECT_EQ(std::get<std::string>(content("string")), "text");
  EXPECT_EQ(std::get<uint64_t>(content("u64")), ~uint64_t{0});
  EXPECT_EQ(std::get<int64_t>(content("i64")), -4);
  EXPECT_EQ(std::get<double>(content("f64")), 2.5);
}

TEST(GgufParse, ReadsEveryArrayTypeExactly) {
  const auto cases = testing::gguf_cases();
  const auto header = parse(case_named(cases, "valid_v3_every_value_type").bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  const auto values = [&](std::string_view key) {
    return std::get<Array>(entry_named(*header, key).value.content).values;
  };
  using Uints = std::vector<uint64_t>;
  using Ints = std::vector<int64_t>;
  using Doubles = std::vector<double>;
  EXPECT_EQ(std::get<Uints>(values("u8s")), (Uints{1, 2}));
  EXPECT_EQ(std::get<Ints>(values("i8s")), (Ints{-1}));
  EXPECT_EQ(std::get<Uints>(values("u16s")), (Uints{3}));
  EXPECT_EQ(std::get<Ints>(values("i16s")), (Ints{-2}));
  EXPECT_EQ(std::get<Uints>(values("u32s")), (Uints{4}));
  EXPECT_EQ(std::get<Ints>(values("i32s")), (Ints{-3}));
  EXPECT_EQ(std::get<Doubles>(values("f32s")), (Doubles{0.5, -0.5}));
  EXPECT_EQ(std::get<std::vector<bool>>(values("bools")), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(std::get<std::vector<std::string>>(values("strings")),
            (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(std::get<Uints>(values("u64s")), (Uints{~uint64_t{0}}));
  EXPECT_EQ(std::get<Ints>(values("i64s")), (Ints{-4}));
  EXPECT_EQ(std::get<Doubles>(values("f64s")), (Doubles{0.25}));
  EXPECT_EQ(std::get<Uints>(values("none")).size(), 0u);
}

TEST(GgufParse, PlacesTensorsAfterTheAlignedHeader) {
  const auto cases = testing::gguf_cases();
  const auto header = parse(case_named(cases, "valid_v3_two_tensors").bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->alignment, 32u);
  EXPECT_EQ(header->data_offset % 32, 0u);
  ASSERT_EQ(header->tensors.size(), 2u);
  const Tensor& q = header->tensors[0];
  EXPECT_EQ(q.name, "blk.0.attn_q.weight");
  EXPECT_EQ(q.type, TensorType::kQ4_0);
  EXPECT_EQ(q.dims, (std::vector<uint64_t>{32, 2, 2}));
  EXPECT_EQ(q.rows(), 4u);
  EXPECT_EQ(q.bytes, 4u * 18u);
  EXPECT_EQ(q.file_offset, header->data_offset);
  EXPECT_EQ(header->tensors[1].file_offset, header->data_offset + 96);
  EXPECT_EQ(header->tensors[1].bytes, 20u);
}

TEST(GgufParse, HonoursTheDeclaredAlignment) {
  const auto cases = testing::gguf_cases();
  const auto header = parse(case_named(cases, "valid_v3_alignment_64").bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->alignment, 64u);
  EXPECT_EQ(header->tensors[0].file_offset, header->data_offset + 64);
}

TEST(GgufParse, BoundsTheElementsOfAllArraysTogether) {
  GgufBytes file;
  file.head(3, 0, 2).array("a", 0, kMaxArrayElements / 2).zeros(kMaxArrayElements / 2);
  file.array("b", 0, kMaxArrayElements / 2 + 1).zeros(kMaxArrayElements / 2 + 1);
  const auto header = parse(file.bytes());
  ASSERT_FALSE(header.has_value());
  EXPECT_NE(header.error().message.find("expected at most 16777216 in all arrays"),
            std::string::npos)
      << header.error().message;
}

TEST(GgufParse, BoundsTheSizeOfTheHeader) {
  const std::string half(kMaxHeaderBytes / 2, 'x');
  GgufBytes entries;
  entries.head(3, 0, 2).entry("a", 8).string(half).entry("b", 8).string(half);
  GgufBytes elements;
  elements.head(3, 0, 1).array("a", 8, 3).string(half).string(half).string("");
  for (const GgufBytes* const file : {&entries, &elements}) {
    const auto header = parse(file->bytes());
    ASSERT_FALSE(header.has_value());
    EXPECT_NE(header.error().message.find("the header is larger than 128 MiB"), std::string::npos)
        << header.error().message;
  }
}

TEST(GgufParse, EscapesAndShortensWhatItQuotes) {
  GgufBytes file;
  file.head(3, 0, 1).entry("line\nbreak\x1b[31m" + std::string(500, 'k'), 13).zeros(8);
  const auto header = parse(file.bytes());
  ASSERT_FALSE(header.has_value());
  EXPECT_NE(header.error().message.find("'line\\x0abreak\\x1b[31mkkk"), std::string::npos);
  EXPECT_LT(header.error().message.size(), 200u);
}

TEST(GgufTensorBytes, KnowsEveryType) {
  for (const TensorGeometry& geometry : kTensorGeometries) {
    const std::vector<uint64_t> dims{geometry.block_weights * uint64_t{3}, 5};
    const auto bytes = tensor_bytes(geometry.type, dims);
    ASSERT_TRUE(bytes.has_value()) << geometry.name;
    EXPECT_EQ(*bytes, 15u * geometry.block_bytes) << geometry.name;
  }
}

// The corpus of the fuzz target: the table above, and inputs that once were a problem.
TEST(GgufCorpus, HoldsEveryCase) {
  const std::filesystem::path folder = testing::source_dir() / "fuzz/corpus/gguf";
  for (const GgufCase& c : testing::gguf_cases()) {
    std::ifstream in(folder / c.name, std::ios::binary);
    const std::string found((std::istreambuf_iterator<char>(in)), {});
    const std::string expected(reinterpret_cast<const char*>(c.bytes.data()), c.bytes.size());
    EXPECT_EQ(found, expected) << folder / c.name << ": write it with scripts/fuzz --make-corpus";
  }
}

TEST(GgufCorpus, ParsesWithoutHarm) {
  size_t n_files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(testing::source_dir() / "fuzz/corpus/gguf")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    const auto header = parse_tight(std::as_bytes(std::span(content)));
    EXPECT_TRUE(header.has_value() || !header.error().message.empty()) << file.path();
    ++n_files;
  }
  EXPECT_GE(n_files, testing::gguf_cases().size());
}

}  // namespace
}  // namespace godwit::gguf
