#include "backend/cuda/kv_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace godwit::cuda {
namespace {

struct Case {
  uint32_t head_dim;
  TensorType k_type;
  TensorType v_type;
  KvLayout::Order order;
};

const std::vector<Case> kCases = {
    {64, TensorType::kBF16, TensorType::kBF16, KvLayout::Order::kOperand},
    {128, TensorType::kF16, TensorType::kF16, KvLayout::Order::kOperand},
    {96, TensorType::kBF16, TensorType::kBF16, KvLayout::Order::kOperand},
    {256, TensorType::kF16, TensorType::kF16, KvLayout::Order::kOperand},
    {80, TensorType::kF16, TensorType::kF16, KvLayout::Order::kPlain},
    {64, TensorType::kF32, TensorType::kF16, KvLayout::Order::kPlain},
    {64, TensorType::kF16, TensorType::kBF16, KvLayout::Order::kPlain},
    {64, TensorType::kF32, TensorType::kF32, KvLayout::Order::kPlain},
};

TEST(KvLayout, ChoosesTheOperandOrderWhereItExists) {
  for (const Case& c : kCases) {
    EXPECT_EQ(kv_layout({.n_kv_heads = 2, .head_dim = c.head_dim}, c.k_type, c.v_type, 100).order,
              c.order);
  }
}

TEST(KvLayout, GivesEveryElementItsOwnBytesAndUsesThemAll) {
  for (const Case& c : kCases) {
    const KvLayout layout =
        kv_layout({.n_kv_heads = 2, .head_dim = c.head_dim}, c.k_type, c.v_type, 100);
    ASSERT_EQ(layout.capacity, 128u);
    std::vector<uint8_t> used(layout.layer_bytes(), 0);
    const auto take = [&](uint64_t at, uint32_t n) {
      ASSERT_EQ(at % n, 0u);
      ASSERT_LE(at + n, used.size());
      for (uint32_t i = 0; i < n; ++i) ++used[at + i];
    };
    for (uint32_t head = 0; head < 2; ++head) {
      for (uint64_t position = 0; position < layout.capacity; ++position) {
        for (uint32_t dim = 0; dim < c.head_dim; ++dim) {
          take(layout.k_index(head, position, dim), layout.k_bytes);
          take(layout.v_index(head, position, dim), layout.v_bytes);
        }
      }
    }
    EXPECT_EQ(std::set<uint8_t>(used.begin(), used.end()), std::set<uint8_t>{1}) << c.head_dim;
  }
}

// mma.m16n8k16 wants of its B operand [k, n], in lane l: rows 2 (l % 4) + {0, 1} of column l / 4 in
// its first register, rows 8 further in its second. A 16-byte load holds two operands.
TEST(KvLayout, OneLoadOfALaneIsTheOperandOfTwoProducts) {
  constexpr uint32_t kHeadDim = 128;
  for (uint32_t p8 = 0; p8 < 4; ++p8) {
    for (uint32_t pair = 0; pair < kHeadDim / 32; ++pair) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        for (uint32_t word = 0; word < 8; ++word) {
          const uint32_t k = word / 4 * 16 + word / 2 % 2 * 8 + lane % 4 * 2 + word % 2;
          EXPECT_EQ(operand_k_index(kHeadDim, 64 + p8 * 8 + lane / 4, pair * 32 + k),
                    4 * 32 * kHeadDim + ((p8 * (kHeadDim / 32) + pair) * 32 + lane) * 8 + word);
        }
      }
    }
  }
  for (uint32_t p16 = 0; p16 < 2; ++p16) {
    for (uint32_t pair = 0; pair < kHeadDim / 16; ++pair) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        for (uint32_t word = 0; word < 8; ++word) {
          const uint32_t k = word / 2 % 2 * 8 + lane % 4 * 2 + word % 2;
          EXPECT_EQ(
              operand_v_index(kHeadDim, 32 + p16 * 16 + k, pair * 16 + word / 4 * 8 + lane / 4),
              3 * 32 * kHeadDim + ((p16 * (kHeadDim / 16) + pair) * 32 + lane) * 8 + word);
        }
      }
    }
  }
}

}  // namespace
}  // namespace godwit::cuda
