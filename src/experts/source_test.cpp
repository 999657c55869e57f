#include "experts/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "testing/expert_model.h"

namespace godwit::experts {
namespace {

using testing::ExpertLayer;
using testing::ExpertModel;
using testing::ExpertShards;

constexpr ExpertLayer kMixed = {6, {TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16}};
constexpr ExpertLayer kPlain = {4, {TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0}};
constexpr ExpertLayer kDense = {};

TEST(ExpertSource, SlicesLieInTheirTensorsOneAfterTheOther) {
  const ExpertModel model({kMixed, kDense, kPlain}, ExpertShards::kOneFile);
  const ExpertSource& source = model.source();
  EXPECT_EQ(source.n_layers(), 3u);
  EXPECT_EQ(source.n_experts(0), 6u);
  EXPECT_EQ(source.n_experts(1), 0u);
  for (const uint32_t layer : {0u, 2u}) {
    uint64_t sum = 0;
    for (const Part part : kAllParts) {
      const gguf::Tensor& tensor = *source.tensor(layer, part);
      const uint64_t bytes = tensor.bytes / source.n_experts(layer);
      sum += bytes;
      for (uint32_t e = 0; e < source.n_experts(layer); ++e) {
        const Slice slice = source.slice({layer, e}, part);
        EXPECT_EQ(slice.bytes, bytes);
        EXPECT_EQ(slice.offset, tensor.file_offset + e * bytes);
        const auto mapped = source.mapped({layer, e})[static_cast<size_t>(part)];
        EXPECT_EQ(mapped.data(), tensor.data.data() + e * bytes);
        EXPECT_EQ(mapped.size(), bytes);
      }
    }
    EXPECT_EQ(source.file_bytes(layer), sum);
  }
}

TEST(ExpertSource, KnowsTheShardOfEachTensor) {
  const ExpertModel model({kPlain, kMixed}, ExpertShards::kOnePerLayer);
  const ExpertSource& source = model.source();
  ASSERT_EQ(source.shards().size(), 2u);
  EXPECT_EQ(source.slice({0, 1}, Part::kUp).shard, 0u);
  EXPECT_EQ(source.slice({1, 1}, Part::kUp).shard, 1u);
  EXPECT_NE(source.describe({1, 5}, Part::kDown)
                .find("'blk.1.ffn_down_exps.weight' (layer 1, expert 5) of"),
            std::string::npos);
  EXPECT_NE(source.describe({1, 5}, Part::kDown).find("model-00002-of-00002.gguf"),
            std::string::npos);
}

TEST(ExpertSource, RefusesTensorsThatAreNoExperts) {
  const ExpertModel model({kMixed, kPlain}, ExpertShards::kOneFile);
  const std::vector<LayerTensors> right = model.tensors();

  gguf::Tensor flat = *right[0].parts[0];
  flat.dims.pop_back();
  std::vector<LayerTensors> wrong = right;
  wrong[0].parts[0] = &flat;
  auto refused = ExpertSource::create(model.file(), wrong);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("has 2 dims, expected 3"), std::string::npos);

  wrong = right;
  wrong[0].parts[2] = right[1].parts[2];
  refused = ExpertSource::create(model.file(), wrong);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("has 4 experts, another of its layer 6"),
            std::string::npos);

  gguf::Tensor odd = *right[0].parts[0];
  odd.bytes -= 1;
  wrong = right;
  wrong[0].parts[0] = &odd;
  EXPECT_FALSE(ExpertSource::create(model.file(), wrong).has_value());

  gguf::Tensor beyond = *right[0].parts[0];
  beyond.file_offset = UINT64_MAX - 8;
  wrong[0].parts[0] = &beyond;
  EXPECT_FALSE(ExpertSource::create(model.file(), wrong).has_value());
  beyond = *right[0].parts[0];
  beyond.shard = 3;
  EXPECT_FALSE(ExpertSource::create(model.file(), wrong).has_value());
}

TEST(ExpertSource, RefusesAFileThatHasBecomeShorter) {
  const ExpertModel model({kPlain}, ExpertShards::kOneFile);
  const std::filesystem::path path = model.file().path();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto refused = ExpertSource::create(model.file(), model.tensors());
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("but its file has"), std::string::npos);
}

}  // namespace
}  // namespace godwit::experts
