// What is refused and in which words, and what a file's keys decide: on files of a few hundred
// bytes, written for each case.
#include "model/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "gguf/writer.h"
#include "testing/temporary_folder.h"

namespace godwit::model {
namespace {

constexpr uint32_t kDim = 16;
constexpr uint32_t kFfn = 24;
constexpr uint32_t kVocab = 11;
constexpr uint32_t kLayers = 6;

// A file of zeros with the tensors of a gemma3 model of six layers, 2 heads of 8 and 1 KV head;
// tests take keys and tensors away or add some.
struct SmallFile {
  std::vector<gguf::KeyValue> metadata;
  std::vector<gguf::TensorSpec> tensors;
};

SmallFile small_gemma3() {
  SmallFile file;
  file.metadata = {gguf::make_string("general.architecture", "gemma3"),
                   gguf::make_uint("gemma3.block_count", kLayers),
                   gguf::make_uint("gemma3.context_length", 64),
                   gguf::make_uint("gemma3.embedding_length", kDim),
                   gguf::make_uint("gemma3.feed_forward_length", kFfn),
                   gguf::make_uint("gemma3.attention.head_count", 2),
                   gguf::make_uint("gemma3.attention.head_count_kv", 1),
                   gguf::make_uint("gemma3.attention.sliding_window", 4)};
  const auto add = [&](std::string name, std::vector<uint64_t> dims) {
    file.tensors.push_back({std::move(name), TensorType::kF32, std::move(dims)});
  };
  add("token_embd.weight", {kDim, kVocab});
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string prefix = fmt::format("blk.{}.", i);
    for (const char* norm : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}) {
      add(prefix + norm + ".weight", {kDim});
    }
    add(prefix + "attn_q.weight", {kDim, 16});
    add(prefix + "attn_k.weight", {kDim, 8});
    add(prefix + "attn_v.weight", {kDim, 8});
    add(prefix + "attn_q_norm.weight", {8});
    add(prefix + "attn_k_norm.weight", {8});
    add(prefix + "attn_output.weight", {16, kDim});
    add(prefix + "ffn_gate.weight", {kDim, kFfn});
    add(prefix + "ffn_up.weight", {kDim, kFfn});
    add(prefix + "ffn_down.weight", {kFfn, kDim});
  }
  add("output_norm.weight", {kDim});
  return file;
}

class Registry : public ::testing::Test {
 protected:
  Result<Model> build(const SmallFile& small, const BuildSettings& settings = {}) {
    const std::filesystem::path path = folder_.path() / "small.gguf";
    Result<gguf::Writer> writer = gguf::Writer::create(path, small.metadata, small.tensors);
    EXPECT_TRUE(writer) << writer.error().message;
    for (const gguf::TensorSpec& tensor : small.tensors) {
      uint64_t n = 1;
      for (const uint64_t dim : tensor.dims) n *= dim;
      EXPECT_TRUE(writer->append(std::vector<std::byte>(n * sizeof(float))));
    }
    EXPECT_TRUE(writer->finish());
    Result<gguf::File> file = gguf::File::open(path);
    EXPECT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
    return build_model(*file_, settings);
  }

  std::string error_of(const SmallFile& small) {
    const Result<Model> model = build(small);
    return model ? "built" : model.error().message;
  }

  static gguf::KeyValue& key(SmallFile& file, std::string_view name) {
    return *std::ranges::find(file.metadata, name, &gguf::KeyValue::key);
  }

  testing::TemporaryFolder folder_;
  std::optional<gguf::File> file_;
};

std::vector<program::Attend> attends(const program::Program& program) {
  std::vector<program::Attend> found;
  for (const program::Step& step : program.main) {
    if (const auto* attend = std::get_if<program::Attend>(&step.operation)) {
      found.push_back(*attend);
    }
  }
  return found;
}

TEST_F(Registry, SaysWhatFilesOutOfScopeAre) {
  const std::pair<const char*, const char*> cases[] = {
      {"clip", "projector"},  {"bert", "embedding model"}, {"t5", "encoder-decoder"},
      {"llada", "diffusion"}, {"rwkv7", "recurrent"},      {"deepseek2", "mixture of experts"},
  };
  for (const auto& [architecture, words] : cases) {
    SmallFile file = small_gemma3();
    file.metadata[0] = gguf::make_string("general.architecture", architecture);
    EXPECT_NE(error_of(file).find(words), std::string::npos) << error_of(file);
  }
}

TEST_F(Registry, TellsAdaptersAndEmbeddingModelsByTheirKeys) {
  SmallFile adapter = small_gemma3();
  adapter.metadata.push_back(gguf::make_string("general.type", "adapter"));
  EXPECT_NE(error_of(adapter).find("LoRA adapter"), std::string::npos) << error_of(adapter);
  SmallFile embedding = small_gemma3();
  embedding.metadata.push_back(gguf::make_uint("gemma3.pooling_type", 1));
  EXPECT_NE(error_of(embedding).find("embedding model"), std::string::npos) << error_of(embedding);
}

TEST_F(Registry, ListsWhatItKnowsForAnUnknownArchitecture) {
  SmallFile file = small_gemma3();
  file.metadata[0] = gguf::make_string("general.architecture", "gemma99\n");
  const std::string error = error_of(file);
  EXPECT_NE(error.find("gemma99\\x0a"), std::string::npos) << error;
  EXPECT_NE(error.find("gemma3"), std::string::npos) << error;
}

TEST_F(Registry, RefusesATensorThatNothingReads) {
  SmallFile file = small_gemma3();
  file.tensors.push_back({"blk.3.attn_sinks.weight", TensorType::kF32, {2}});
  EXPECT_NE(error_of(file).find("'blk.3.attn_sinks.weight'"), std::string::npos) << error_of(file);
}

TEST_F(Registry, NamesAMissingTensor) {
  SmallFile file = small_gemma3();
  std::erase_if(file.tensors, [](const auto& t) { return t.name == "blk.2.attn_q_norm.weight"; });
  EXPECT_NE(error_of(file).find("'blk.2.attn_q_norm.weight' is missing"), std::string::npos)
      << error_of(file);
}

TEST_F(Registry, GivesTheWindowsThatTheFileNames) {
  SmallFile by_default = small_gemma3();
  const Result<Model> five_of_six = build(by_default);
  ASSERT_TRUE(five_of_six) << five_of_six.error().message;
  for (size_t i = 0; i < kLayers; ++i) {
    EXPECT_EQ(attends(five_of_six->program)[i].window, i == 5 ? 0u : 4u) << i;
  }

  SmallFile by_period = small_gemma3();
  by_period.metadata.push_back(gguf::make_uint("gemma3.attention.sliding_window_pattern", 2));
  const Result<Model> every_second = build(by_period);
  ASSERT_TRUE(every_second) << every_second.error().message;
  for (size_t i = 0; i < kLayers; ++i) {
    EXPECT_EQ(attends(every_second->program)[i].window, i % 2 == 1 ? 0u : 4u) << i;
  }

  SmallFile by_layer = small_gemma3();
  by_layer.metadata.push_back(
      gguf::make_ints("gemma3.attention.sliding_window_pattern", {0, 0, 1, 0, 1, 1}));
  const Result<Model> named = build(by_layer);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(attends(named->program)[1].window, 0u);
  EXPECT_EQ(attends(named->program)[2].window, 4u);
  EXPECT_NE(attends(named->program)[1].rope.value, attends(named->program)[2].rope.value);
}

TEST_F(Registry, RefusesAPatternOfAnotherLength) {
  SmallFile file = small_gemma3();
  file.metadata.push_back(gguf::make_ints("gemma3.attention.sliding_window_pattern", {0, 1}));
  EXPECT_NE(error_of(file).find("2 values, expected one per layer (6)"), std::string::npos)
      << error_of(file);
}

TEST_F(Registry, RefusesRecurrentLayersThatAreNotOneValueEach) {
  constexpr const char* kKey = "gemma3.attention.recurrent_layers";
  const std::pair<gguf::KeyValue, const char*> cases[] = {
      {gguf::make_ints(kKey, {0, 1}), "2 values, expected one per layer (6)"},
      {gguf::make_ints(kKey, {}), "0 values, expected one per layer (6)"},
      {gguf::make_ints(kKey, std::vector<int64_t>(100000)), "100000 values"},
      {gguf::make_strings(kKey, {"yes"}), "recurrent_layers"},
      {gguf::make_uint(kKey, 1), "recurrent_layers"},
  };
  for (const auto& [entry, words] : cases) {
    SmallFile file = small_gemma3();
    file.metadata.push_back(entry);
    EXPECT_NE(error_of(file).find(words), std::string::npos) << error_of(file);
  }
}

TEST_F(Registry, RefusesCountsThatDoNotFitTogether) {
  const auto error_with = [&](const char* name, uint32_t value) {
    SmallFile file = small_gemma3();
    file.metadata.push_back(gguf::make_uint(fmt::format("gemma3.{}", name), value));
    return error_of(file);
  };
  for (const uint32_t n : {6u, 7u}) {
    EXPECT_NE(error_with("nextn_predict_layers", n).find("expected fewer than block_count (6)"),
              std::string::npos);
  }
  EXPECT_NE(error_with("nextn_predict_layers", UINT32_MAX).find("expected 0 to 4096"),
            std::string::npos);
  EXPECT_NE(error_with("expert_count", 4).find("_used_count' is 0, expected 1 to expert_count (4)"),
            std::string::npos);
  EXPECT_NE(error_with("expert_used_count", 1).find("expected 1 to expert_count (0)"),
            std::string::npos);
}

// Of layers that it would have to run, what a hybrid's file does not say.
TEST_F(Registry, RefusesAHybridWithoutItsCounts) {
  const auto error_with = [&](const std::vector<std::pair<const char*, uint32_t>>& counts) {
    SmallFile file = small_gemma3();
    for (gguf::KeyValue& entry : file.metadata) {
      if (entry.key.starts_with("gemma3.")) entry.key.replace(0, 6, "qwen3next");
    }
    key(file, "general.architecture") = gguf::make_string("general.architecture", "qwen3next");
    for (const auto& [name, value] : counts) {
      file.metadata.push_back(gguf::make_uint(fmt::format("qwen3next.{}", name), value));
    }
    return error_of(file);
  };
  EXPECT_NE(error_with({}).find("expert_count and expert_feed_forward_length"), std::string::npos);
  std::vector<std::pair<const char*, uint32_t>> counts = {
      {"expert_count", 4},    {"expert_used_count", 2}, {"expert_feed_forward_length", 8},
      {"ssm.conv_kernel", 4}, {"ssm.state_size", 8},    {"ssm.time_step_rank", 4},
      {"ssm.group_count", 2}};
  EXPECT_NE(error_with(counts).find("is missing"), std::string::npos) << error_with(counts);
  for (const auto& [index, value] : {std::pair(3, 1u), {4, 0u}, {5, 0u}, {6, 0u}, {6, 3u}}) {
    auto wrong = counts;
    wrong[static_cast<size_t>(index)].second = value;
    EXPECT_NE(error_with(wrong).find("make no DeltaNet layer"), std::string::npos)
        << error_with(wrong);
  }
  counts.emplace_back("full_attention_interval", 0);
  EXPECT_NE(error_with(counts).find("make no DeltaNet layer"), std::string::npos);
}

TEST_F(Registry, RefusesACapThatIsNotPositive) {
  SmallFile file = small_gemma3();
  file.metadata.push_back(gguf::make_float("gemma3.final_logit_softcapping", -1.0f));
  EXPECT_NE(error_of(file).find("final_logit_softcapping"), std::string::npos) << error_of(file);
}

}  // namespace
}  // namespace godwit::model
