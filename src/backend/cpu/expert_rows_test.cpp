#include "backend/cpu/expert_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "os/memory.h"

namespace godwit::cpu {
namespace {

TEST(ExpertRows, GroupsEveryChoiceOnceInOrderOfRows) {
  // Three rows of two ids, four floats apart.
  const std::vector<float> ids = {3, 0, 9, 9, 0, 2, 9, 9, 3, 2, 9, 9};
  std::vector<uint32_t> begins(5, 77);
  std::vector<ExpertRow> rows(8);
  const ExpertRows groups({.ids = ids.data(), .stride = 4, .n_rows = 3, .n_used = 2},
                          {.begins = begins, .rows = rows});
  const std::vector<std::vector<ExpertRow>> expected = {
      {{0, 1}, {1, 0}}, {}, {{1, 1}, {2, 1}}, {{0, 0}, {2, 0}}};
  ASSERT_EQ(groups.n_experts(), expected.size());
  for (size_t expert = 0; expert < expected.size(); ++expert) {
    EXPECT_TRUE(std::ranges::equal(groups.of(expert), expected[expert])) << expert;
  }
}

TEST(ExpertRowsDeathTest, AbortsOnAnExpertThatDoesNotExist) {
  const std::vector<float> ids = {2};
  std::vector<uint32_t> begins(3);
  std::vector<ExpertRow> rows(1);
  const auto group = [&] {
    return ExpertRows({.ids = ids.data(), .stride = 1, .n_rows = 1, .n_used = 1},
                      {.begins = begins, .rows = rows});
  };
  EXPECT_DEATH(static_cast<void>(group()), "an expert that does not exist");
}

// What is copied is what rounding the gathered floats would give: blocks do not know their row.
TEST(ExpertRows, GathersWhatRoundingTheGatheredRowsWouldGive) {
  constexpr size_t kRows = 5;
  constexpr size_t kSlotCols = 256;
  constexpr size_t kCols = 3 * kSlotCols;
  std::vector<float> x(kRows * kCols);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1013) - 500.0f;
  const std::vector<ExpertRow> rows = {{0, 2}, {3, 0}, {4, 1}};
  std::vector<float> picked;
  for (const ExpertRow& r : rows) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(r.row * kCols + r.slot * kSlotCols);
    picked.insert(picked.end(), first, first + kSlotCols);
  }
  for (const ActivationKind kind :
       {ActivationKind::kF32, ActivationKind::kQ8Block32, ActivationKind::kQ8Block256}) {
    const size_t planes = activation_planes(kind);
    const auto rounded = [&](const std::vector<float>& from, size_t n, size_t cols,
                             AlignedBuffer& scratch) {
      const Activations out =
          layout_activations(kind, from.data(), cols, planes * n, cols, scratch.bytes());
      quantize_planes(kind, out, from.data(), cols, n, cols, {0, n}, Isa::kGeneric);
      return out;
    };
    auto all_scratch =
        *AlignedBuffer::create(activation_bytes(kind, planes * kRows, kCols) + 64, 64);
    auto expected_scratch =
        *AlignedBuffer::create(activation_bytes(kind, planes * rows.size(), kSlotCols) + 64, 64);
    auto scratch = *AlignedBuffer::create(gathered_bytes(kind, rows.size(), kSlotCols), 64);
    const Activations all = rounded(x, kRows, kCols, all_scratch);
    const Activations expected = rounded(picked, rows.size(), kSlotCols, expected_scratch);
    const Activations found =
        gather_activations(kind, Planes::kTwo, all, kRows, rows,
                           {.stride = kSlotCols, .n = kSlotCols}, scratch.bytes());
    if (kind == ActivationKind::kF32) {
      EXPECT_TRUE(std::equal(picked.begin(), picked.end(), found.f32));
      continue;
    }
    const size_t blocks = kSlotCols / activation_block(kind);
    const size_t sums = kind == ActivationKind::kQ8Block32 ? blocks : kSumWordsPerBlock256;
    for (size_t t = 0; t < planes * rows.size(); ++t) {
      EXPECT_TRUE(std::equal(found.q + t * found.q_stride, found.q + t * found.q_stride + kSlotCols,
                             expected.q + t * expected.q_stride));
      EXPECT_TRUE(std::equal(found.scales + t * found.scale_stride,
                             found.scales + t * found.scale_stride + blocks,
                             expected.scales + t * expected.scale_stride));
      EXPECT_TRUE(std::equal(found.sums + t * found.sum_stride,
                             found.sums + t * found.sum_stride + sums,
                             expected.sums + t * expected.sum_stride));
    }
  }
}

}  // namespace
}  // namespace godwit::cpu
