#include "experts/slot_plan.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace godwit::experts {
namespace {

constexpr uint64_t kMib = 1 << 20;

TEST(CachePolicy, IsFullMmapOrMebibytes) {
  EXPECT_EQ(parse_cache_policy("full")->kind, CacheKind::kFull);
  EXPECT_EQ(parse_cache_policy("mmap")->kind, CacheKind::kMapped);
  EXPECT_EQ(*parse_cache_policy("512"), (CachePolicy{CacheKind::kBudget, 512}));
  for (const char* text : {"", "0", "-1", "12x", " 12", "1.5", "Full", "99999999999999999999"}) {
    EXPECT_FALSE(parse_cache_policy(text).has_value()) << text;
  }
  // 2^44 MiB are 2^64 bytes.
  EXPECT_FALSE(parse_cache_policy("17592186044416").has_value());
}

TEST(SlotPlan, FullHasASlotForEveryExpert) {
  const std::vector<LayerSize> layers = {{8, 1000}, {0, 0}, {4, 2000}, {8, 1000}};
  const auto plan = plan_slots(layers, {CacheKind::kFull, 0}, 2);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->classes.size(), 2u);
  EXPECT_EQ(plan->classes[0].slot_bytes, 1024u);
  EXPECT_EQ(plan->classes[0].n_slots, 16u);
  EXPECT_EQ(plan->classes[1].slot_bytes, 2048u);
  EXPECT_EQ(plan->classes[1].n_slots, 4u);
  EXPECT_EQ(plan->bytes, 16u * 1024 + 4 * 2048);
  EXPECT_EQ(plan->class_of_layer[2], 1u);
  EXPECT_EQ(plan->slot(1, 3), (SlotRange{16 * 1024 + 3 * 2048, 2048}));
}

TEST(SlotPlan, MappedHasNoMemory) {
  const std::vector<LayerSize> layers = {{8, 1000}};
  const auto plan = plan_slots(layers, {CacheKind::kMapped, 0}, 2);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->bytes, 0u);
  EXPECT_EQ(plan->n_slots(), 0u);
}

TEST(SlotPlan, NamesTheSmallestBudgetThatWorks) {
  // 10 slots of 1 MiB and 10 of 2 MiB.
  const std::vector<LayerSize> layers = {{64, kMib}, {64, 2 * kMib}};
  const auto refused = plan_slots(layers, {CacheKind::kBudget, 29}, 10);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("the smallest that does has 30 MiB"), std::string::npos)
      << refused.error().message;
  const auto plan = plan_slots(layers, {CacheKind::kBudget, 30}, 10);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->classes[0].n_slots, 10u);
  EXPECT_EQ(plan->classes[1].n_slots, 10u);
}

TEST(SlotPlan, NeverExceedsTheBudgetAndNeverShrinksWithIt) {
  RandomStream random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<LayerSize> layers;
    uint64_t all_bytes = 0;
    for (uint64_t n = 1 + random.below(6); n > 0; --n) {
      layers.push_back({static_cast<uint32_t>(1 + random.below(64)), 1 + random.below(3 * kMib)});
      all_bytes += layers.back().n_experts * (layers.back().packed_bytes / 64 + 1) * 64;
    }
    std::vector<uint32_t> slots_before(layers.size());
    for (uint64_t mib = 1; mib <= all_bytes / kMib + 2; ++mib) {
      const auto plan = plan_slots(layers, {CacheKind::kBudget, mib}, 3);
      if (!plan) continue;
      uint64_t sum = 0;
      for (size_t c = 0; c < plan->classes.size(); ++c) {
        EXPECT_GE(plan->classes[c].n_slots, slots_before[c]);
        EXPECT_LE(plan->classes[c].n_slots, plan->classes[c].n_experts);
        EXPECT_GE(plan->classes[c].n_slots, std::min(3u, plan->classes[c].n_experts));
        slots_before[c] = plan->classes[c].n_slots;
        EXPECT_EQ(plan->classes[c].offset, sum);
        sum += plan->classes[c].n_slots * plan->classes[c].slot_bytes;
      }
      EXPECT_EQ(plan->bytes, sum);
      ASSERT_LE(sum, mib * kMib);
    }
    // The largest of these budgets holds everything.
    const auto plan = plan_slots(layers, {CacheKind::kBudget, all_bytes / kMib + 2}, 3);
    for (const SlotClass& c : plan->classes) EXPECT_EQ(c.n_slots, c.n_experts);
  }
}

TEST(SlotPlan, RefusesSizesThatCannotBe) {
  const std::vector<LayerSize> none = {{8, 0}};
  EXPECT_FALSE(plan_slots(none, {CacheKind::kFull, 0}, 2).has_value());
  const std::vector<LayerSize> huge = {{1u << 31, uint64_t{1} << 40}};
  EXPECT_FALSE(plan_slots(huge, {CacheKind::kFull, 0}, 2).has_value());
}

}  // namespace
}  // namespace godwit::experts
