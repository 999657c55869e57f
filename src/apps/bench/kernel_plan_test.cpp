#include "apps/bench/kernel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/bench/kernel_report.h"
#include "backend/cpu/kernel_table.h"

namespace godwit::apps {
namespace {

TEST(KernelPlan, ReadsShapes) {
  EXPECT_EQ(parse_matvec_shape("8192x2048").value(), (MatVecShape{.rows = 8192, .cols = 2048}));
  EXPECT_EQ(parse_attention_heads("32x8x64").value(),
            (AttentionHeads{.n_heads = 32, .n_kv_heads = 8, .head_dim = 64}));
}

TEST(KernelPlan, RefusesOtherShapes) {
  for (const char* text : {"", "x", "8", "8x", "x8", "8x8x8", "8 x8", "0x8", "8x0", "-8x8", "8X8",
                           "9999999x8", "99999999999999999999x8", "8x8 "}) {
    EXPECT_FALSE(parse_matvec_shape(text)) << text;
  }
  for (const char* text : {"", "32x8", "32x8x64x1", "32x5x64", "8x32x64", "32x0x64", "32x8x"}) {
    EXPECT_FALSE(parse_attention_heads(text)) << text;
  }
}

TEST(KernelPlan, ReadsPairsOfKvTypes) {
  EXPECT_EQ(parse_kv_pair("f16").value(), (KvPair{.k = TensorType::kF16, .v = TensorType::kF16}));
  EXPECT_EQ(parse_kv_pair("f32/f16").value(),
            (KvPair{.k = TensorType::kF32, .v = TensorType::kF16}));
  for (const char* text : {"", "/", "f16/", "/f16", "f16/f16/f16", "q4_k"}) {
    EXPECT_FALSE(parse_kv_pair(text)) << text;
  }
  const std::vector<KvPair> pairs = kv_pairs();
  EXPECT_GE(pairs.size(), 2u);
  for (const KvPair& pair : pairs) EXPECT_EQ(std::ranges::count(pairs, pair), 1);
}

TEST(KernelPlan, ReadsInstructionSetsThatAreThere) {
  EXPECT_EQ(parse_isa("generic").value(), Isa::kGeneric);
  EXPECT_FALSE(parse_isa("sse"));
  EXPECT_FALSE(parse_isa(""));
}

KernelLists small() {
  KernelLists lists;
  lists.types = {"q8_0", "f32"};
  lists.shapes = {"64x256", "32x512"};
  lists.isas = {"generic"};
  lists.n_threads = 3;
  return lists;
}

TEST(KernelPlan, MultipliesInAsManyPlanesAsModelsRunUnlessAsked) {
  const auto as_run = plan_matvecs(small());
  ASSERT_TRUE(as_run) << as_run.error().message;
  ASSERT_EQ(as_run->size(), 4u);
  for (const cpu::MatVecCase& c : *as_run) {
    EXPECT_EQ(c.n_planes, c.kernel->type == TensorType::kF32 ? 1u : 2u);
    EXPECT_EQ(c.n_threads, 3u);
  }
  KernelLists both = small();
  both.planes = {1, 2};
  EXPECT_EQ(plan_matvecs(both)->size(), 6u);  // f32 has one
  both.types = {"f32"};
  both.planes = {2};
  EXPECT_FALSE(plan_matvecs(both));
}

TEST(KernelPlan, OrdersByTypeThenShapeThenTokens) {
  KernelLists lists = small();
  lists.tokens = {1, 512};
  const auto cases = plan_matvecs(lists);
  ASSERT_TRUE(cases);
  ASSERT_EQ(cases->size(), 8u);
  EXPECT_EQ((*cases)[1].n_tokens, 512u);
  EXPECT_EQ((*cases)[1].rows, 64u);
  EXPECT_EQ((*cases)[2].rows, 32u);
  EXPECT_EQ((*cases)[4].kernel->type, TensorType::kF32);
}

TEST(KernelPlan, AllIsEveryTypeOfTheTable) {
  KernelLists lists = small();
  lists.types = {"all"};
  lists.shapes = {"64x256"};
  size_t n = 0;
  for (const cpu::MatVecKernel& kernel : cpu::matvec_kernels()) n += kernel.isa == Isa::kGeneric;
  EXPECT_EQ(plan_matvecs(lists)->size(), n);
}

TEST(KernelPlan, RefusesWhatCannotBeMeasured) {
  const auto refused = [](auto change) {
    KernelLists lists = small();
    change(lists);
    return !plan_matvecs(lists);
  };
  EXPECT_TRUE(refused([](KernelLists& l) { l.types = {"q9"}; }));
  EXPECT_TRUE(refused([](KernelLists& l) { l.types = {"q8_1"}; }));  // no kernel
  EXPECT_TRUE(refused([](KernelLists& l) { l.shapes = {"64"}; }));
  EXPECT_TRUE(refused([](KernelLists& l) { l.isas = {"sse"}; }));
  EXPECT_TRUE(refused([](KernelLists& l) { l.tokens = {0}; }));
  EXPECT_TRUE(refused([](KernelLists& l) { l.tokens = {9000}; }));
  EXPECT_TRUE(refused([](KernelLists& l) { l.planes = {3}; }));
  KernelLists lists = small();
  lists.positions = {0};
  EXPECT_FALSE(plan_attention(lists));
}

TEST(KernelPlan, RefusesMoreThanMemoryHolds) {
  KernelLists lists = small();
  lists.shapes = {"1048576x1048576"};
  const auto matrix = plan_matvecs(lists);
  ASSERT_FALSE(matrix);
  EXPECT_NE(matrix.error().message.find("--shape"), std::string::npos);
  // Bytes that 64 bits do not hold.
  lists.heads = {"1048576x1048576x1048576"};
  lists.positions = {size_t{1} << 22};
  EXPECT_FALSE(plan_attention(lists));
}

TEST(KernelPlan, AttentionIsEveryPairAtEveryLength) {
  KernelLists lists = small();
  lists.kv_pairs = {"f16", "f32/f16"};
  lists.positions = {10, 20, 30};
  const auto cases = plan_attention(lists);
  ASSERT_TRUE(cases) << cases.error().message;
  ASSERT_EQ(cases->size(), 6u);
  EXPECT_EQ((*cases)[3].k_type, TensorType::kF32);
  EXPECT_EQ((*cases)[5].n_positions, 30u);
  lists.kv_pairs.clear();
  EXPECT_EQ(plan_attention(lists)->size(), 3 * kv_pairs().size());
}

TEST(KernelReport, RowsHaveACellForEachColumn) {
  const auto cases = plan_matvecs(small());
  const cpu::MatVecSpeed speed{.us = 10, .bytes = 1000, .n_copies = 7, .gbps = 0.1, .share = 0.25};
  const ReportRow row = matvec_row(cases->front(), speed);
  EXPECT_EQ(row.cells.size(), matvec_columns().size());
  EXPECT_EQ(row.json["percent_of_bandwidth"], 25.0);
  EXPECT_EQ(row.json["type"], "q8_0");
  EXPECT_DOUBLE_EQ(intensity(cases->front(), speed), 64 * 256 / 1000.0);
  EXPECT_EQ(attention_row({}, {}).cells.size(), attention_columns().size());
}

}  // namespace
}  // namespace godwit::apps
