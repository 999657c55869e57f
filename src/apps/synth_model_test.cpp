#include "apps/synth_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>

#include "quant/formats.h"

namespace godwit::apps {
namespace {

class SynthModelTest : public testing::Test {
 protected:
  SynthModelTest() {
    options_.shape = *find_shape("tiny");
    options_.seed = 1;
    folder_ = std::filesystem::path(testing::TempDir()) /
              fmt::format("synth_{}_{}", ::getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~SynthModelTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(std::string_view name) {
    const auto path = folder_ / name;
    const auto model = plan_synth_model(options_);
    EXPECT_TRUE(model.has_value()) << model.error().message;
    const auto written = write_synth_model(*model, path, {});
    EXPECT_TRUE(written.has_value()) << written.error().message;
    return path;
  }

  gguf::File write_and_open() {
    auto file = gguf::File::open(write("model.gguf"));
    if (!file) throw std::runtime_error(file.error().message);
    return *std::move(file);
  }

  std::string error() {
    const auto model = plan_synth_model(options_);
    return model ? "" : model.error().message;
  }

  SynthOptions options_;
  std::filesystem::path folder_;
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(SynthModelTest, IsAFunctionOfItsOptions) {
  const std::string first = content(write("a.gguf"));
  EXPECT_GT(first.size(), 100'000u);
  EXPECT_EQ(first, content(write("b.gguf")));
}

TEST_F(SynthModelTest, EverySeedHasItsOwnWeights) {
  const gguf::File first = write_and_open();
  options_.seed = 2;
  const gguf::File second = write_and_open();
  for (const gguf::Tensor& tensor : first.tensors()) {
    EXPECT_FALSE(std::ranges::equal(tensor.data, second.find_tensor(tensor.name)->data))
        << tensor.name;
  }
}

TEST_F(SynthModelTest, ATensorDoesNotDependOnItsNeighbours) {
  const gguf::File first = write_and_open();
  options_.shape.n_layers = 1;
  options_.rules = {{"attn_q", TensorType::kF16}};
  const gguf::File second = write_and_open();
  const auto a = first.find_tensor("blk.0.ffn_down.weight")->data;
  const auto b = second.find_tensor("blk.0.ffn_down.weight")->data;
  EXPECT_TRUE(std::ranges::equal(a, b));
}

TEST_F(SynthModelTest, HasTheTensorsAndShapesOfLlama) {
  const gguf::File file = write_and_open();
  EXPECT_EQ(file.tensors().size(), 2u + 2 * 9);
  const auto dims = [&](std::string_view name) {
    const gguf::Tensor* tensor = file.find_tensor(name);
    return tensor == nullptr ? std::vector<uint64_t>{} : tensor->dims;
  };
  using Dims = std::vector<uint64_t>;
  EXPECT_EQ(dims("token_embd.weight"), (Dims{256, 512}));
  EXPECT_EQ(dims("blk.1.attn_norm.weight"), (Dims{256}));
  EXPECT_EQ(dims("blk.1.attn_q.weight"), (Dims{256, 256}));
  EXPECT_EQ(dims("blk.1.attn_k.weight"), (Dims{256, 128}));
  EXPECT_EQ(dims("blk.1.attn_v.weight"), (Dims{256, 128}));
  EXPECT_EQ(dims("blk.1.attn_output.weight"), (Dims{256, 256}));
  EXPECT_EQ(dims("blk.1.ffn_gate.weight"), (Dims{256, 512}));
  EXPECT_EQ(dims("blk.1.ffn_up.weight"), (Dims{256, 512}));
  EXPECT_EQ(dims("blk.1.ffn_down.weight"), (Dims{512, 256}));
  EXPECT_EQ(dims("output_norm.weight"), (Dims{256}));
  EXPECT_EQ(file.find_tensor("output.weight"), nullptr);
}

TEST_F(SynthModelTest, AddsBiasesOutputMatrixAndRopeFactorsOnRequest) {
  options_.shape.arch = "qwen2";
  options_.shape.output = OutputMatrix::kOwn;
  options_.shape.rope_factors = RopeFactors::kLlama3;
  options_.shape.rope_theta = 500000.0f;
  const gguf::File file = write_and_open();
  EXPECT_EQ(*file.need_string("general.architecture"), "qwen2");
  EXPECT_EQ(*file.need_uint("qwen2.block_count"), 2u);
  for (const char* name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.1.attn_v.bias"}) {
    ASSERT_NE(file.find_tensor(name), nullptr) << name;
    EXPECT_EQ(file.find_tensor(name)->type, TensorType::kF32);
  }
  ASSERT_NE(file.find_tensor("output.weight"), nullptr);
  const gguf::Tensor* factors = file.find_tensor("rope_freqs.weight");
  ASSERT_NE(factors, nullptr);
  std::vector<float> values(32);
  ASSERT_EQ(factors->bytes, 32 * sizeof(float));
  quant::decode_row(TensorType::kF32, factors->data, values);
  EXPECT_EQ(values.front(), 1.0f);  // the shortest wave is left alone
  EXPECT_EQ(values.back(), 8.0f);   // the longest is stretched
  EXPECT_TRUE(std::ranges::is_sorted(values));
}

TEST_F(SynthModelTest, RulesGiveTypesToWholePartsOfNames) {
  options_.shape.output = OutputMatrix::kOwn;
  options_.embedding_type = TensorType::kQ8_0;
  options_.rules = {{"attn_v", TensorType::kQ6_K},
                    {"output", TensorType::kF16},
                    {"blk.1.attn_v", TensorType::kQ5_1}};
  const gguf::File file = write_and_open();
  const auto type = [&](std::string_view name) { return file.find_tensor(name)->type; };
  EXPECT_EQ(type("token_embd.weight"), TensorType::kQ8_0);
  EXPECT_EQ(type("output.weight"), TensorType::kF16);
  EXPECT_EQ(type("output_norm.weight"), TensorType::kF32);
  EXPECT_EQ(type("blk.0.attn_output.weight"), TensorType::kQ4_K);
  EXPECT_EQ(type("blk.0.attn_v.weight"), TensorType::kQ6_K);
  EXPECT_EQ(type("blk.1.attn_v.weight"), TensorType::kQ5_1);
  EXPECT_EQ(type("blk.0.attn_norm.weight"), TensorType::kF32);
}

TEST_F(SynthModelTest, WritesEveryTypeThatHasAFormat) {
  for (const quant::Format& format : quant::formats()) {
    SCOPED_TRACE(tensor_type_name(format.type));
    options_.matrix_type = format.type;
    const gguf::File file = write_and_open();
    const gguf::Tensor* tensor = file.find_tensor("blk.0.ffn_up.weight");
    ASSERT_NE(tensor, nullptr);
    std::vector<float> weights(512 * 256);
    quant::decode_row(format.type, tensor->data, weights);
    double squares = 0;
    for (const float w : weights) squares += static_cast<double>(w) * static_cast<double>(w);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(weights.size())), 1.0 / 16, 0.002);
  }
}

TEST_F(SynthModelTest, NormWeightsAreNearOne) {
  const gguf::File file = write_and_open();
  std::vector<float> weights(256);
  quant::decode_row(TensorType::kF32, file.find_tensor("output_norm.weight")->data, weights);
  for (const float w : weights) EXPECT_NEAR(w, 1.0f, 0.3f);
  EXPECT_NE(weights[0], weights[1]);
}

TEST_F(SynthModelTest, TheVocabularyHasEveryByteAndNoTokenTwice) {
  const gguf::File file = write_and_open();
  const auto& tokens = **file.get_strings("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 512u);
  EXPECT_EQ(tokens['A'], "A");
  EXPECT_EQ(tokens[' '], "\xc4\xa0");
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_EQ(tokens[*file.need_uint("tokenizer.ggml.eos_token_id")], "<|im_end|>");
  EXPECT_EQ((*file.get_ints("tokenizer.ggml.token_type"))->size(), tokens.size());
}

TEST_F(SynthModelTest, ReportsProgressUpToItsSize) {
  const auto model = plan_synth_model(options_);
  ASSERT_TRUE(model.has_value());
  uint64_t last = 0;
  ASSERT_TRUE(write_synth_model(*model, folder_ / "m.gguf", [&](uint64_t done) {
    EXPECT_GT(done, last);
    last = done;
  }));
  EXPECT_EQ(last, model->tensor_bytes());
}

TEST_F(SynthModelTest, RefusesRowsThatAreNotWholeBlocks) {
  options_.shape.dim = 576;
  EXPECT_NE(error().find("rows of 576 weights: expected a multiple of 256 for Q4_K"),
            std::string::npos)
      << error();
}

TEST_F(SynthModelTest, RefusesARuleThatMatchesNothing) {
  options_.rules = {{"attn_qq", TensorType::kF16}};
  EXPECT_NE(error().find("no matrix matches 'attn_qq'"), std::string::npos) << error();
}

TEST_F(SynthModelTest, RefusesATypeItCannotMake) {
  options_.matrix_type = TensorType::kI8;
  EXPECT_NE(error().find("cannot make weights of type I8"), std::string::npos) << error();
}

TEST_F(SynthModelTest, RefusesImpossibleShapes) {
  const ModelShape tiny = options_.shape;
  options_.shape.n_kv_heads = 3;
  EXPECT_NE(error().find("multiple of --kv-heads"), std::string::npos) << error();
  options_.shape = tiny;
  options_.shape.n_layers = 0;
  EXPECT_NE(error().find("--layers between 1 and"), std::string::npos) << error();
  options_.shape = tiny;
  options_.shape.vocab = 259;
  EXPECT_NE(error().find("--vocab of 260"), std::string::npos) << error();
  options_.shape = tiny;
  options_.shape.head_dim = 63;
  EXPECT_NE(error().find("even --head-dim"), std::string::npos) << error();
}

TEST_F(SynthModelTest, HasExpertsBehindARouterThatStaysFloat) {
  options_.shape.arch = "qwen3moe";
  options_.shape.experts = {.count = 8, .used = 2, .ffn = 256};
  const gguf::File file = write_and_open();
  using Dims = std::vector<uint64_t>;
  const gguf::Tensor* router = file.find_tensor("blk.1.ffn_gate_inp.weight");
  ASSERT_NE(router, nullptr);
  EXPECT_EQ(router->dims, (Dims{256, 8}));
  EXPECT_EQ(router->type, TensorType::kF32);
  EXPECT_EQ(file.find_tensor("blk.1.ffn_up_exps.weight")->dims, (Dims{256, 256, 8}));
  EXPECT_EQ(file.find_tensor("blk.1.ffn_down_exps.weight")->type, TensorType::kQ4_K);
  EXPECT_EQ(file.find_tensor("blk.1.ffn_up.weight"), nullptr);
  EXPECT_EQ(file.find_tensor("blk.1.ffn_gate_inp_shexp.weight"), nullptr);
  EXPECT_EQ(*file.need_uint("qwen3moe.expert_used_count"), 2u);
}

TEST_F(SynthModelTest, HasRecurrentLayersBetweenThoseOfGatedAttention) {
  options_.shape.arch = "qwen3next";
  options_.shape.n_layers = 4;
  options_.shape.experts = {.count = 8, .used = 2, .ffn = 256, .shared_ffn = 512};
  options_.shape.recurrence = {.key_heads = 2, .value_heads = 4, .head_dim = 64};
  const gguf::File file = write_and_open();
  using Dims = std::vector<uint64_t>;
  const auto dims = [&](std::string_view name) {
    const gguf::Tensor* tensor = file.find_tensor(name);
    return tensor == nullptr ? Dims{} : tensor->dims;
  };
  EXPECT_EQ(dims("blk.0.attn_qkv.weight"), (Dims{256, 512}));
  EXPECT_EQ(dims("blk.0.attn_gate.weight"), (Dims{256, 256}));
  EXPECT_EQ(dims("blk.0.ssm_ba.weight"), (Dims{256, 8}));
  EXPECT_EQ(dims("blk.0.ssm_conv1d.weight"), (Dims{4, 512}));
  EXPECT_EQ(dims("blk.0.ssm_out.weight"), (Dims{256, 256}));
  EXPECT_EQ(dims("blk.3.attn_q.weight"), (Dims{256, 512}));
  EXPECT_EQ(dims("blk.3.ssm_a"), Dims{});
  EXPECT_EQ(dims("blk.3.ffn_gate_inp_shexp.weight"), (Dims{256}));
  EXPECT_EQ(dims("blk.3.ffn_down_shexp.weight"), (Dims{512, 256}));
  EXPECT_EQ(dims("blk.0.post_attention_norm.weight"), (Dims{256}));
  EXPECT_EQ(dims("blk.0.ffn_norm.weight"), Dims{});
  std::vector<float> decays(4);
  quant::decode_row(TensorType::kF32, file.find_tensor("blk.0.ssm_a")->data, decays);
  for (const float decay : decays) EXPECT_LT(decay, 0.0f);
}

TEST_F(SynthModelTest, HasSinksAndABiasForEveryExpert) {
  options_.shape.arch = "gpt-oss";
  options_.shape.experts = {.count = 8, .used = 2, .ffn = 256};
  const gguf::File file = write_and_open();
  using Dims = std::vector<uint64_t>;
  EXPECT_EQ(file.find_tensor("blk.1.attn_sinks.weight")->dims, (Dims{4}));
  EXPECT_EQ(file.find_tensor("blk.1.ffn_up_exps.bias")->dims, (Dims{256, 8}));
  EXPECT_EQ(file.find_tensor("blk.1.ffn_down_exps.bias")->type, TensorType::kF32);
  EXPECT_NE(file.find_tensor("blk.1.post_attention_norm.weight"), nullptr);
  EXPECT_EQ(file.find_tensor("blk.1.ffn_norm.weight"), nullptr);
}

TEST_F(SynthModelTest, KeepsTheGatesOfRecurrentLayersApartWhereTheArchitectureDoes) {
  options_.shape.arch = "qwen35";
  options_.shape.recurrence = {.key_heads = 2, .value_heads = 4, .head_dim = 64, .interval = 2};
  const gguf::File file = write_and_open();
  EXPECT_EQ(file.find_tensor("blk.0.ssm_beta.weight")->dims, (std::vector<uint64_t>{256, 4}));
  EXPECT_NE(file.find_tensor("blk.0.ssm_alpha.weight"), nullptr);
  EXPECT_EQ(file.find_tensor("blk.0.ssm_ba.weight"), nullptr);
  EXPECT_NE(file.find_tensor("blk.0.ffn_up.weight"), nullptr);
}

TEST_F(SynthModelTest, RefusesImpossibleExpertsAndRecurrence) {
  options_.shape.arch = "qwen3next";
  EXPECT_NE(error().find("--experts between 1 and"), std::string::npos) << error();
  options_.shape.experts = {.count = 8, .used = 9, .ffn = 256, .shared_ffn = 256};
  EXPECT_NE(error().find("--experts-used between 1 and 8"), std::string::npos) << error();
  options_.shape.experts.used = 8;
  options_.shape.recurrence = {.key_heads = 3, .value_heads = 4, .head_dim = 64};
  EXPECT_NE(error().find("multiple of --ssm-key-heads"), std::string::npos) << error();
  options_.shape.recurrence.key_heads = 2;
  EXPECT_EQ(error(), "");
  options_.shape.rope_dim = 66;
  EXPECT_NE(error().find("even --rope-dim up to --head-dim 64"), std::string::npos) << error();
}

TEST(ModelShapes, AreAllValid) {
  for (const ModelShape& shape : named_shapes()) {
    EXPECT_TRUE(validate(shape).has_value()) << shape.name;
    EXPECT_EQ(find_shape(shape.name), &shape);
  }
  EXPECT_EQ(find_shape("llama-2b"), nullptr);
}

TEST(TypeRules, MatchWholePartsOnly) {
  const auto rule = [](std::string pattern) { return TypeRule{std::move(pattern), {}}; };
  EXPECT_TRUE(matches(rule("output"), "output.weight"));
  EXPECT_FALSE(matches(rule("output"), "blk.0.attn_output.weight"));
  EXPECT_FALSE(matches(rule("output"), "output_norm.weight"));
  EXPECT_TRUE(matches(rule("blk.1"), "blk.1.attn_q.weight"));
  EXPECT_FALSE(matches(rule("blk.1"), "blk.11.attn_q.weight"));
  EXPECT_TRUE(matches(rule("1.attn_q"), "blk.11.1.attn_q.weight"));
  EXPECT_FALSE(matches(rule(""), "output.weight"));
}

}  // namespace
}  // namespace godwit::apps
