#include "apps/quantize_mix.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quant/encode_table.h"

namespace godwit::apps {
namespace {

TEST(FileTypes, AreFoundByNameAliasAndNumber) {
  EXPECT_EQ(find_file_type("q4_k_m")->mix, Mix::kQ4_K_M);
  EXPECT_EQ(find_file_type("Q4_K")->mix, Mix::kQ4_K_M);
  EXPECT_EQ(find_file_type("Q3_K")->mix, Mix::kQ3_K_M);
  EXPECT_EQ(find_file_type("15")->mix, Mix::kQ4_K_M);
  EXPECT_EQ(find_file_type("0")->mix, Mix::kF32);
  for (const char* text : {"", "Q4", "Q4_K_L", "99", "15x", "-1", "4"}) {
    EXPECT_EQ(find_file_type(text), nullptr) << text;
  }
  for (const FileType& type : file_types()) {
    EXPECT_EQ(find_file_type(type.name), &type);
    EXPECT_EQ(find_file_type(std::to_string(static_cast<uint32_t>(type.mix))), &type);
  }
}

// Every type that any rule of any mix can hand out must have an encoder.
TEST(Mixes, HandOutOnlyTypesThatCanBeWritten) {
  const std::vector<std::string_view> parts = {
      "attn_q.weight",      "attn_k.weight",   "attn_v.weight",
      "attn_output.weight", "ffn_gate.weight", "ffn_up.weight",
      "ffn_down.weight",    "attn_qkv.weight", "ffn_down_exps.weight"};
  std::vector<std::string> names = {"token_embd.weight", "output.weight"};
  for (int layer = 0; layer < 80; ++layer) {
    for (const std::string_view part : parts)
      names.push_back(fmt::format("blk.{}.{}", layer, part));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const FileType& type : file_types()) {
    for (const size_t n_experts : {0u, 4u, 8u}) {
      for (const size_t n_kv_heads : {2u, 64u}) {
        MixRules rules(type,
                       {.architecture = "llama",
                        .n_layers = 80,
                        .n_heads = 64,
                        .n_kv_heads = n_kv_heads,
                        .n_experts = n_experts},
                       views);
        for (const std::string_view name : views) {
          const TensorType given = rules.next(name, 8192);
          EXPECT_NE(quant::find_encoder(given), nullptr) << type.name << " " << name;
          EXPECT_NE(quant::find_encoder(fitting_type(given, 96)), nullptr);
        }
      }
    }
  }
}

TEST(Mixes, GiveSharedValueHeadsOf70bMoreBits) {
  const std::vector<std::string_view> names = {"blk.0.attn_v.weight"};
  const MixFacts big{
      .architecture = "llama", .n_layers = 80, .n_heads = 64, .n_kv_heads = 8, .n_experts = 0};
  EXPECT_EQ(MixRules(*find_file_type("Q3_K_S"), big, names).next(names[0], 8192),
            TensorType::kQ5_K);
  MixFacts other = big;
  other.n_layers = 79;
  EXPECT_EQ(MixRules(*find_file_type("Q3_K_S"), other, names).next(names[0], 8192),
            TensorType::kQ3_K);
}

TEST(Mixes, TakeTheLayerOfAnExpertFromItsName) {
  const std::vector<std::string_view> names = {"blk.9.ffn_down_exps.weight"};
  const MixFacts facts{
      .architecture = "qwen3moe", .n_layers = 16, .n_heads = 8, .n_kv_heads = 8, .n_experts = 128};
  // Layer 9 is not one of those with more bits, layer 0 would be.
  EXPECT_EQ(MixRules(*find_file_type("Q4_K_M"), facts, names).next(names[0], 2048),
            TensorType::kQ4_K);
}

TEST(QuantisedTensors, AreMatricesOfWeights) {
  const auto quantised = [](std::string_view name, std::vector<uint64_t> dims) {
    return is_quantised_tensor(name, dims);
  };
  EXPECT_TRUE(quantised("blk.0.attn_q.weight", {64, 64}));
  EXPECT_TRUE(quantised("token_embd.weight", {64, 1000}));
  EXPECT_TRUE(quantised("blk.0.ffn_down_exps.weight", {64, 64, 8}));
  EXPECT_FALSE(quantised("blk.0.attn_norm.weight", {64}));
  EXPECT_FALSE(quantised("blk.0.attn_norm.weight", {64, 64}));
  EXPECT_FALSE(quantised("blk.0.attn_q.bias", {64, 64}));
  EXPECT_FALSE(quantised("rope_freqs.weight", {64}));
  EXPECT_FALSE(quantised("a.weight", {64, 1}));
  EXPECT_FALSE(quantised("blk.0.ffn_gate_inp.weight", {64, 8}));
  EXPECT_FALSE(quantised("blk.0.ssm_conv1d.weight", {4, 64}));
}

TEST(FittingType, KeepsWhatFitsAndFallsBackToBlocksOf32) {
  EXPECT_EQ(fitting_type(TensorType::kQ4_K, 512), TensorType::kQ4_K);
  EXPECT_EQ(fitting_type(TensorType::kQ4_K, 96), TensorType::kQ5_0);
  EXPECT_EQ(fitting_type(TensorType::kQ5_K, 96), TensorType::kQ5_1);
  EXPECT_EQ(fitting_type(TensorType::kQ6_K, 96), TensorType::kQ8_0);
  EXPECT_EQ(fitting_type(TensorType::kQ3_K, 96), TensorType::kQ4_0);
  EXPECT_EQ(fitting_type(TensorType::kIQ2_XXS, 96), TensorType::kIQ4_NL);
  EXPECT_EQ(fitting_type(TensorType::kQ8_0, 96), TensorType::kQ8_0);
  EXPECT_EQ(fitting_type(TensorType::kQ4_K, 100), TensorType::kF16);
  EXPECT_EQ(fitting_type(TensorType::kQ4_0, 100), TensorType::kF16);
}

}  // namespace
}  // namespace godwit::apps
