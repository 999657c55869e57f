#include "gguf/writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/random.h"
#include "gguf/encode.h"
#include "gguf/parse.h"
#include "testing/gguf_cases.h"
#include "testing/temporary_folder.h"

namespace godwit::gguf {
namespace {

using testing::TemporaryFolder;

std::vector<std::byte> random_bytes(uint64_t seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random_bits(seed, i));
  return bytes;
}

std::vector<TensorSpec> three_tensors() {
  return {{.name = "a", .type = TensorType::kF32, .dims = {3}},          // 12 bytes, 20 padding
          {.name = "b", .type = TensorType::kQ4_0, .dims = {64, 3, 2}},  // 216 bytes
          {.name = "c", .type = TensorType::kF16, .dims = {1}}};
}

constexpr size_t kThreeTensorsBytes = 12 + 216 + 2;

TEST(GgufWriter, WritesEveryValueTypeAsItWasRead) {
  const auto cases = testing::gguf_cases();
  const auto& original =
      std::ranges::find(cases, "valid_v3_every_value_type", &testing::GgufCase::name)->bytes;
  const auto header = parse_header({.bytes = original, .file_bytes = original.size(), .name = "m"});
  ASSERT_TRUE(header.has_value()) << header.error().message;
  const auto encoded = encode_header(header->metadata, {});
  ASSERT_TRUE(encoded.has_value()) << encoded.error().message;
  ASSERT_GE(encoded->bytes.size(), original.size());
  EXPECT_TRUE(std::ranges::equal(std::span(encoded->bytes).first(original.size()), original));
}

TEST(GgufWriter, ReadsBackWhatWasStreamed) {
  const TemporaryFolder folder;
  const std::vector<KeyValue> metadata{make_string("general.architecture", "llama"),
                                       make_uint("u", 7),
                                       make_float("f", 0.25f),
                                       make_bool("b", true),
                                       make_strings("ss", {"x", ""}),
                                       make_ints("is", {-1, 1}),
                                       make_floats("fs", {0.5})};
  const auto specs = three_tensors();
  const auto data = random_bytes(1, kThreeTensorsBytes);
  // Pieces that end within, at and beyond the borders of tensors.
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{12}, size_t{100}, data.size()}) {
    auto writer = Writer::create(folder.file("m.gguf"), metadata, specs);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    for (size_t i = 0; i < data.size(); i += piece) {
      const auto part = std::span(data).subspan(i, std::min(piece, data.size() - i));
      ASSERT_TRUE(writer->append(part).has_value());
    }
    const Status finished = writer->finish();
    ASSERT_TRUE(finished.has_value()) << finished.error().message;
    const auto file = File::open(folder.file("m.gguf"));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->total_bytes() % kDefaultAlignment, 0u);
    ASSERT_EQ(file->tensors().size(), 3u);
    std::vector<std::byte> read;
    for (size_t i = 0; i < 3; ++i) {
      const Tensor& tensor = file->tensors()[i];
      EXPECT_EQ(tensor.name, specs[i].name);
      EXPECT_EQ(tensor.type, specs[i].type);
      EXPECT_EQ(tensor.dims, specs[i].dims);
      read.insert(read.end(), tensor.data.begin(), tensor.data.end());
    }
    EXPECT_EQ(read, data) << piece;
    EXPECT_EQ(file->need_uint("u").value(), 7u);
    EXPECT_EQ(file->need_double("f").value(), 0.25);
    EXPECT_EQ(file->get_bool("b").value(), true);
    EXPECT_EQ(*file->get_strings("ss").value(), (std::vector<std::string>{"x", ""}));
    EXPECT_EQ(file->get_ints("is").value(), (std::vector<int64_t>{-1, 1}));
    EXPECT_EQ(file->get_doubles("fs").value(), (std::vector<double>{0.5}));
  }
}

TEST(GgufWriter, StreamsPiecesLargerThanItsBuffer) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> specs{{.name = "a", .type = TensorType::kI8, .dims = {3000000}},
                                      {.name = "b", .type = TensorType::kI8, .dims = {700001}}};
  const auto data = random_bytes(2, 3700001);
  auto writer = Writer::create(folder.file("m.gguf"), {}, specs);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  ASSERT_TRUE(writer->append(std::span(data).first(100)).has_value());
  ASSERT_TRUE(writer->append(std::span(data).subspan(100)).has_value());
  ASSERT_TRUE(writer->finish().has_value());
  const auto file = File::open(folder.file("m.gguf"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE(std::ranges::equal(file->tensors()[0].data, std::span(data).first(3000000)));
  EXPECT_TRUE(std::ranges::equal(file->tensors()[1].data, std::span(data).subspan(3000000)));
}

TEST(GgufWriter, HonoursAnAlignmentInTheMetadata) {
  const TemporaryFolder folder;
  const std::vector<KeyValue> metadata{make_uint("general.alignment", 256)};
  auto writer = Writer::create(folder.file("m.gguf"), metadata, three_tensors());
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  ASSERT_TRUE(writer->append(random_bytes(3, kThreeTensorsBytes)).has_value());
  ASSERT_TRUE(writer->finish().has_value());
  const auto file = File::open(folder.file("m.gguf"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  for (const Tensor& tensor : file->tensors()) EXPECT_EQ(tensor.file_offset % 256, 0u);
}

TEST(GgufWriter, LeavesNothingBehindUnlessFinished) {
  const TemporaryFolder folder;
  {
    auto writer = Writer::create(folder.file("m.gguf"), {}, three_tensors());
    ASSERT_TRUE(writer.has_value());
    EXPECT_FALSE(std::filesystem::exists(folder.file("m.gguf")));
    EXPECT_EQ(folder.n_files(), 1u);
    ASSERT_TRUE(writer->append(random_bytes(4, 20)).has_value());
    const Status early = writer->finish();
    ASSERT_FALSE(early.has_value());
    EXPECT_NE(early.error().message.find("tensor 'b' of "), std::string::npos);
    EXPECT_NE(early.error().message.find("got 8 bytes, expected 216"), std::string::npos);
  }
  EXPECT_EQ(folder.n_files(), 0u);
}

TEST(GgufWriter, RefusesMoreBytesThanPromised) {
  const TemporaryFolder folder;
  auto writer = Writer::create(folder.file("m.gguf"), {}, three_tensors());
  ASSERT_TRUE(writer.has_value());
  const Status status = writer->append(random_bytes(5, kThreeTensorsBytes + 3));
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("3 more bytes for "), std::string::npos);
}

TEST(GgufWriter, TwoWritersOfOnePathDoNotMix) {
  const TemporaryFolder folder;
  auto first = Writer::create(folder.file("m.gguf"), {}, three_tensors());
  auto second = Writer::create(folder.file("m.gguf"), {}, three_tensors());
  ASSERT_TRUE(first.has_value() && second.has_value());
  const auto data = random_bytes(6, kThreeTensorsBytes);
  ASSERT_TRUE(first->append(random_bytes(7, kThreeTensorsBytes)).has_value());
  ASSERT_TRUE(second->append(data).has_value());
  ASSERT_TRUE(first->finish().has_value());
  ASSERT_TRUE(second->finish().has_value());
  EXPECT_EQ(folder.n_files(), 1u);
  const auto file = File::open(folder.file("m.gguf"));
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(std::ranges::equal(file->tensors()[0].data, std::span(data).first(12)));
}

TEST(GgufWriter, SaysWhenTheDiskRefuses) {
  const TemporaryFolder folder;
  EXPECT_FALSE(Writer::create(folder.file("no/folder.gguf"), {}, {}).has_value());
  // A limit on the size of files stands for a full disk.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<TensorSpec> specs{{.name = "a", .type = TensorType::kI8, .dims = {100000}}};
  auto writer = Writer::create(folder.file("m.gguf"), {}, specs);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(writer->append(random_bytes(8, 100000)).has_value());
  const Status finished = writer->finish();
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  ASSERT_FALSE(finished.has_value());
  EXPECT_NE(finished.error().message.find("cannot write "), std::string::npos)
      << finished.error().message;
}

void expect_not_written(std::span<const KeyValue> metadata, std::span<const TensorSpec> tensors,
                        std::string_view message) {
  const TemporaryFolder folder;
  const auto writer = Writer::create(folder.file("m.gguf"), metadata, tensors);
  ASSERT_FALSE(writer.has_value()) << message;
  EXPECT_NE(writer.error().message.find(message), std::string::npos) << writer.error().message;
  EXPECT_EQ(folder.n_files(), 0u);
}

TEST(GgufWriter, WritesNothingThatCannotBeReadBack) {
  const auto metadata = [](KeyValue entry) { return std::vector<KeyValue>{std::move(entry)}; };
  const auto tensor = [](std::string name, std::vector<uint64_t> dims) {
    return std::vector<TensorSpec>{
        {.name = std::move(name), .type = TensorType::kQ4_0, .dims = std::move(dims)}};
  };
  expect_not_written(metadata(make_uint("", 1)), {}, "has an empty key");
  expect_not_written(metadata(make_uint("general.alignment", 3)), {}, "general.alignment is 3");
  expect_not_written(std::vector{make_uint("a", 1), make_uint("a", 1)}, {}, "'a' appears twice");
  expect_not_written(metadata(make_ints("k", {int64_t{1} << 40})), {},
                     "'k' has content that does not fit its type array of i32");
  expect_not_written({}, tensor("", {32}), "has an empty name");
  expect_not_written({}, tensor(std::string(65, 'n'), {32}), "65 bytes long");
  expect_not_written({}, tensor("w", {31}), "tensor 'w' has rows of 31 weights");
  expect_not_written({}, tensor("w", {}), "tensor 'w' has 0 dimensions");
  expect_not_written({}, tensor("w", {32, uint64_t{1} << 62}), "overflows");
  auto two = tensor("w", {32});
  two.push_back(two[0]);
  expect_not_written({}, two, "tensor 'w' appears twice");
  const std::vector<TensorSpec> vast{
      {.name = "a", .type = TensorType::kI8, .dims = {uint64_t{1} << 62}},
      {.name = "b", .type = TensorType::kI8, .dims = {uint64_t{1} << 62}}};
  expect_not_written({}, vast, "larger than any file");
}

TEST(GgufWriter, RefusesContentOfAnotherKindThanItsType) {
  const auto refused = [](Value value) {
    const std::vector<KeyValue> metadata{{.key = "k", .value = std::move(value)}};
    expect_not_written(metadata, {}, "does not fit its type");
  };
  refused({.type = ValueType::kU8, .content = uint64_t{256}});
  refused({.type = ValueType::kU16, .content = uint64_t{65536}});
  refused({.type = ValueType::kU32, .content = uint64_t{1} << 32});
  refused({.type = ValueType::kI8, .content = int64_t{-129}});
  refused({.type = ValueType::kI16, .content = int64_t{1} << 15});
  refused({.type = ValueType::kI32, .content = int64_t{1} << 31});
  refused({.type = ValueType::kU32, .content = int64_t{1}});
  refused({.type = ValueType::kI32, .content = uint64_t{1}});
  refused({.type = ValueType::kU8, .content = 1.0});
  refused({.type = ValueType::kF32, .content = true});
  refused({.type = ValueType::kBool, .content = std::string("true")});
  refused({.type = ValueType::kString, .content = Array{}});
  refused({.type = ValueType::kArray, .content = uint64_t{1}});
  refused({.type = ValueType::kArray,
           .content = Array{.element = ValueType::kF32, .values = std::vector<bool>{true}}});
}

}  // namespace
}  // namespace godwit::gguf
