// What the backend decides on the host, which needs no card.
#include "backend/cuda/stepwise.h"

#include <gtest/gtest.h>

namespace godwit::cuda {
namespace {

constexpr int kSharedBytes = 227 << 10;

program::Attend attend_of(uint32_t head_dim) {
  program::Attend attend;
  attend.n_heads = 4;
  attend.n_kv_heads = 2;
  attend.head_dim = head_dim;
  return attend;
}

program::RmsNorm norm_of(uint64_t cols) {
  return {.weight = {.id = 0, .type = TensorType::kF32, .rows = 1, .cols = cols}, .epsilon = 1e-5f};
}

std::string reason_of(const program::Operation& operation) {
  const Status s = stepwise_supports(operation, kSharedBytes);
  return s ? "" : s.error().message;
}

TEST(Stepwise, RunsHeadsOfAnyUsualSize) {
  for (const uint32_t head_dim : {16u, 64u, 80u, 96u, 128u, 256u}) {
    EXPECT_EQ(reason_of(attend_of(head_dim)), "");
  }
  EXPECT_EQ(reason_of(attend_of(512)), "cuda: heads of 512 dimensions; expected at most 256");
}

TEST(Stepwise, NormsHeadsByThemselvesOrTogether) {
  program::Attend attend = attend_of(64);
  attend.q_norm = norm_of(64);
  attend.k_norm = norm_of(128);
  EXPECT_EQ(reason_of(attend), "");
  attend.k_norm = norm_of(96);
  EXPECT_EQ(reason_of(attend), "cuda: a norm of 96 values over heads of 64");
}

TEST(Stepwise, RefusesWhatHasNoKernel) {
  EXPECT_EQ(reason_of(program::Recurrent{}), "cuda: no kernel for recurrent layers");
  EXPECT_EQ(reason_of(program::Route{}), "cuda: no kernel for routed experts");
  EXPECT_EQ(reason_of(program::ExpertGatedUp{}), "cuda: no kernel for routed experts");
  EXPECT_EQ(reason_of(program::ExpertDownAdd{}), "cuda: no kernel for routed experts");
}

TEST(Stepwise, RefusesRowsThatDoNotFitTheCard) {
  program::ProjectAdd add;
  add.weight = {.id = 0, .type = TensorType::kBF16, .rows = 8, .cols = 28672};
  EXPECT_EQ(reason_of(add), "");
  EXPECT_FALSE(stepwise_supports(add, 99 << 10));
  add.weight.cols = 60000;
  EXPECT_EQ(
      reason_of(add),
      "cuda: rows of 60000 weights take 241024 bytes of a block's memory, the card has 232448");
}

TEST(DeviceWeights, KeepsFloatsAndDecodesTheRest) {
  const auto stored = [](TensorType type, uint64_t rows) {
    return DeviceWeights::stored_type({.name = "w", .type = type, .rows = rows, .cols = 64});
  };
  EXPECT_EQ(stored(TensorType::kBF16, 8), TensorType::kBF16);
  EXPECT_EQ(stored(TensorType::kF16, 8), TensorType::kF16);
  EXPECT_EQ(stored(TensorType::kF32, 8), TensorType::kF32);
  EXPECT_EQ(stored(TensorType::kQ4_K, 8), TensorType::kF32);
  EXPECT_EQ(stored(TensorType::kF16, 1), TensorType::kF32);
}

TEST(DeviceWeights, CountsPaddedRows) {
  program::Program program;
  program.weights = {{.name = "a", .type = TensorType::kF16, .rows = 10, .cols = 40},
                     {.name = "b", .type = TensorType::kQ8_0, .rows = 4, .cols = 64}};
  // 10 rows of 64 halves are 1,280 bytes; 4 rows of 64 floats 1,024.
  EXPECT_EQ(DeviceWeights::need(program), 1280u + 1024u);
}

TEST(CudaContext, CountsWhatItWillPlace) {
  program::Program program;
  program.n_vocab = 100;
  program.buffers = {{.name = "x", .width = 64}, {.name = "logits", .width = 100}};
  program.logits = {1};
  program.kvs = {{.n_kv_heads = 2, .head_dim = 64}, {.n_kv_heads = 2, .head_dim = 64}};
  backend::ContextSettings settings{.n_positions = 1000,
                                    .k_type = TensorType::kF16,
                                    .v_type = TensorType::kF16,
                                    .max_rows = 16,
                                    .max_logit_rows = 1};
  const backend::MemoryNeed need = Context::need(program, settings);
  EXPECT_EQ(need.kv_bytes, uint64_t{2} * 2 * 1024 * 64 * 2 * 2);  // layers, heads, padded, K and V
  EXPECT_GT(need.scratch_bytes, uint64_t{16} * 64 * 4);
  settings.n_positions = 2000;
  EXPECT_EQ(Context::need(program, settings).kv_bytes, 2 * need.kv_bytes);
}

}  // namespace
}  // namespace godwit::cuda
