#include "gguf/file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "gguf/shard_name.h"
#include "gguf/writer.h"
#include "testing/gguf_bytes.h"
#include "testing/temporary_folder.h"

namespace godwit::gguf {
namespace {

using testing::GgufBytes;
using testing::TemporaryFolder;

// One shard with a tensor of 8 floats, as a splitting tool writes it.
struct ShardSpec {
  uint16_t number = 0;
  uint16_t count = 2;
  int32_t n_tensors = 2;
  std::string tensor = "a";
  float value = 1.0f;
};

GgufBytes shard(const ShardSpec& spec) {
  GgufBytes file;
  file.head(3, 1, 3).entry_u16("split.no", spec.number).entry_u16("split.count", spec.count);
  file.entry("split.tensors.count", 5).put(spec.n_tensors).tensor(spec.tensor, {8}, 0, 0).pad(32);
  for (int i = 0; i < 8; ++i) file.put(spec.value);
  return file;
}

constexpr std::string_view kFirst = "m-00001-of-00002.gguf";
constexpr std::string_view kSecond = "m-00002-of-00002.gguf";

void expect_refused(const std::filesystem::path& path,
                    std::initializer_list<std::string_view> parts) {
  const auto file = File::open(path);
  ASSERT_FALSE(file.has_value());
  for (const std::string_view part : parts) {
    EXPECT_NE(file.error().message.find(part), std::string::npos) << file.error().message;
  }
  EXPECT_TRUE(file.error().message.starts_with("gguf: ")) << file.error().message;
}

TEST(GgufFile, OpensOneFileAndFindsWhatIsInIt) {
  const TemporaryFolder folder;
  GgufBytes bytes;
  bytes.head(2, 2, 2).entry("general.architecture", 8).string("llama").entry_u32("n", 3);
  bytes.tensor("x", {2, 3}, 0, 32).tensor("y", {1}, 24, 0).pad(32).u8(42).zeros(31);
  for (int i = 0; i < 6; ++i) bytes.put(static_cast<float>(i));
  const auto path = folder.write("model.gguf", bytes.bytes());
  auto opened = File::open(path);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const File file(std::move(*opened));  // spans survive a move

  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.version(), 2u);
  EXPECT_EQ(file.n_shards(), 1u);
  EXPECT_EQ(file.total_bytes(), bytes.size());
  EXPECT_EQ(file.metadata().size(), 2u);
  EXPECT_EQ(file.metadata()[1].key, "n");
  ASSERT_NE(file.find("n"), nullptr);
  EXPECT_EQ(file.find("N"), nullptr);
  EXPECT_EQ(file.tensors()[0].name, "x");
  const Tensor* const x = file.find_tensor("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->rows(), 3u);
  EXPECT_EQ(x->cols(), 2u);
  ASSERT_EQ(x->data.size(), 24u);
  float last = 0;
  std::memcpy(&last, &x->data[20], sizeof(last));
  EXPECT_EQ(last, 5.0f);
  EXPECT_EQ(file.find_tensor("y")->data[0], std::byte{42});
  EXPECT_EQ(file.find_tensor("z"), nullptr);
}

TEST(GgufFile, TypedGettersTellAbsentFromWrong) {
  const TemporaryFolder folder;
  GgufBytes bytes;
  bytes.head(3, 0, 6).entry_u32("u", 3).entry("f", 6).put(0.5f).entry("b", 7).u8(1);
  bytes.entry("s", 8)
      .string("text")
      .array("ss", 8, 1)
      .string("a")
      .array("is", 5, 1)
      .put(int32_t{-1});
  const auto file = File::open(folder.write("model.gguf", bytes.bytes()));
  ASSERT_TRUE(file.has_value()) << file.error().message;

  EXPECT_EQ(file->get_uint("u").value(), 3u);
  EXPECT_EQ(file->get_double("f").value(), 0.5);
  EXPECT_EQ(file->get_bool("b").value(), true);
  EXPECT_EQ(file->get_string("s").value(), "text");
  EXPECT_EQ(file->get_strings("ss").value()->at(0), "a");
  EXPECT_EQ(file->get_ints("is").value(), (std::vector<int64_t>{-1}));
  EXPECT_EQ(file->get_doubles("is").value(), (std::vector<double>{-1}));
  EXPECT_EQ(file->need_uint("u").value(), 3u);
  EXPECT_EQ(file->need_double("f").value(), 0.5);
  EXPECT_EQ(file->need_string("s").value(), "text");

  EXPECT_EQ(file->get_uint("none").value(), std::nullopt);
  EXPECT_EQ(file->get_double("none").value(), std::nullopt);
  EXPECT_EQ(file->get_bool("none").value(), std::nullopt);
  EXPECT_EQ(file->get_string("none").value(), std::nullopt);
  EXPECT_EQ(file->get_strings("none").value(), nullptr);
  EXPECT_EQ(file->get_ints("none").value(), std::nullopt);
  EXPECT_EQ(file->get_doubles("none").value(), std::nullopt);

  EXPECT_FALSE(file->get_uint("f").has_value());
  EXPECT_FALSE(file->get_double("s").has_value());
  EXPECT_FALSE(file->get_bool("u").has_value());
  EXPECT_FALSE(file->get_string("u").has_value());
  EXPECT_FALSE(file->get_strings("is").has_value());
  EXPECT_FALSE(file->get_ints("ss").has_value());
  EXPECT_FALSE(file->get_doubles("b").has_value());
  EXPECT_NE(file->need_uint("none").error().message.find("metadata key 'none' is missing in "),
            std::string::npos);
  EXPECT_FALSE(file->need_double("none").has_value());
  EXPECT_FALSE(file->need_string("u").has_value());
}

TEST(GgufFile, SaysWhyThereIsNoModel) {
  const TemporaryFolder folder;
  expect_refused(folder.file("absent.gguf"), {"absent.gguf", "No such file"});
  expect_refused(folder.path(), {"is a directory"});
  expect_refused(folder.write("empty.gguf", {}), {"empty.gguf is empty (0 bytes)"});
  expect_refused(folder.write("page.gguf", GgufBytes().text("<html>").bytes()),
                 {"page.gguf is a web page"});
}

TEST(GgufSplit, ReadsNamesOfShards) {
  const auto name = parse_shard_name("dir/m-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 10u);
  EXPECT_EQ(name->sibling(3), "dir/m-00003-of-00010.gguf");
  for (const auto* const other :
       {"m.gguf", "m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-0001-of-0002.gguf",
        "m-00001-of-00002.bin", "m-0000x-of-00002.gguf", "m_00001-of-00002.gguf",
        "m-00001-or-00002.gguf", ".gguf"}) {
    EXPECT_FALSE(parse_shard_name(other).has_value()) << other;
  }
}

TEST(GgufSplit, OpensAllShardsFromTheFirst) {
  const TemporaryFolder folder;
  const auto first = folder.write(kFirst, shard({}).bytes());
  folder.write(kSecond, shard({.number = 1, .tensor = "b", .value = 2.0f}).bytes());
  const auto file = File::open(first);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->n_shards(), 2u);
  EXPECT_EQ(file->total_bytes(), 2 * shard({}).size());
  ASSERT_EQ(file->tensors().size(), 2u);
  const Tensor* const b = file->find_tensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shard, 1u);
  float value = 0;
  std::memcpy(&value, b->data.data(), sizeof(value));
  EXPECT_EQ(value, 2.0f);
}

TEST(GgufSplit, SplitOfOneIsAWholeModel) {
  const TemporaryFolder folder;
  const auto bytes = shard({.count = 1, .n_tensors = 1}).bytes();
  EXPECT_TRUE(File::open(folder.write("m-00001-of-00001.gguf", bytes)).has_value());
  EXPECT_TRUE(File::open(folder.write("m.gguf", bytes)).has_value());
}

TEST(GgufSplit, NamesTheFirstShardWhenGivenAnother) {
  const TemporaryFolder folder;
  folder.write(kFirst, shard({}).bytes());
  const auto second = folder.write(kSecond, shard({.number = 1, .tensor = "b"}).bytes());
  expect_refused(second, {"is shard 2 of 2: open the first one, ", folder.file(kFirst).string()});
}

TEST(GgufSplit, NamesAMissingOrBrokenShard) {
  const TemporaryFolder folder;
  const auto first = folder.write(kFirst, shard({}).bytes());
  expect_refused(first, {"shard 2 of 2", kSecond, "No such file"});
  auto bytes = shard({.number = 1, .tensor = "b"}).bytes();
  bytes.resize(bytes.size() - 8);
  folder.write(kSecond, bytes);
  expect_refused(first, {"shard 2 of 2", kSecond, "8 bytes are missing"});
}

TEST(GgufSplit, RefusesShardsThatDisagree) {
  const TemporaryFolder folder;
  const auto first = folder.write(kFirst, shard({}).bytes());
  const auto expect_second_refused = [&](const ShardSpec& spec, std::string_view message) {
    folder.write(kSecond, shard(spec).bytes());
    expect_refused(first, {message, kSecond});
  };
  expect_second_refused({.number = 0, .tensor = "b"}, "split.no is 0 in ");
  expect_second_refused({.number = 1, .count = 3, .tensor = "b"}, "split.count is 3 in ");
  expect_second_refused({.number = 1, .n_tensors = 5, .tensor = "b"},
                        "split.tensors.count is 5 in ");
  expect_second_refused({.number = 1, .tensor = "a"}, "tensor 'a' is both in ");
  const GgufBytes whole = GgufBytes().head(3, 0, 1).entry_u32("a", 1);
  folder.write(kSecond, whole.bytes());
  expect_refused(first, {kSecond, "has no metadata key 'split.count'"});
  const GgufBytes text = GgufBytes().head(3, 0, 1).entry("split.no", 8).string("1");
  folder.write(kSecond, text.bytes());
  expect_refused(first, {kSecond, "'split.no' is string, expected an integer"});
}

TEST(GgufSplit, RefusesAFirstShardThatIsNot) {
  const TemporaryFolder folder;
  expect_refused(folder.write(kFirst, shard({.number = 1}).bytes()), {"split.no is 1", kFirst});
  expect_refused(folder.write(kFirst, shard({.count = 3}).bytes()), {"split.count is 3", kFirst});
  expect_refused(folder.write(kFirst, GgufBytes().head(3, 0, 0).bytes()),
                 {"has no metadata key 'split.count'"});
  expect_refused(folder.write("renamed.gguf", shard({.number = 1}).bytes()),
                 {"is shard 2 of 2", "not named '...-00002-of-00002.gguf'"});
}

TEST(GgufSplit, CountsTheTensorsOfAllShards) {
  const TemporaryFolder folder;
  const auto first = folder.write(kFirst, shard({.n_tensors = 3}).bytes());
  folder.write(kSecond, shard({.number = 1, .n_tensors = 3, .tensor = "b"}).bytes());
  expect_refused(first, {"split.tensors.count is 3", "its shards hold 2 tensors"});
}

}  // namespace
}  // namespace godwit::gguf
