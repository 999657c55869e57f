#include "experts/slot_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/random.h"

namespace godwit::experts {
namespace {

SlotPlan plan_of(std::vector<uint32_t> slots_of_class, std::vector<uint32_t> class_of_layer) {
  SlotPlan plan{.kind = CacheKind::kBudget,
                .classes = {},
                .class_of_layer = std::move(class_of_layer),
                .bytes = 0};
  for (size_t c = 0; c < slots_of_class.size(); ++c) {
    plan.classes.push_back({.slot_bytes = 64 * (c + 1),
                            .n_slots = slots_of_class[c],
                            .n_experts = 100,
                            .offset = plan.bytes});
    plan.bytes += 64 * (c + 1) * slots_of_class[c];
  }
  return plan;
}

SlotIndex load(SlotTable& table, ExpertKey key) {
  const auto taken = table.take(key);
  table.unpin(taken->slot);
  return taken->slot;
}

TEST(SlotTable, EvictsTheLeastRecentlyUsed) {
  const std::vector<uint32_t> n_experts = {100};
  SlotTable table(plan_of({3}, {0}), n_experts);
  load(table, {0, 1});
  load(table, {0, 2});
  load(table, {0, 3});
  const SlotIndex first = table.find({0, 1});
  table.pin(first);
  table.unpin(first);  // used again: now 2 is the oldest
  EXPECT_EQ(table.take({0, 4})->evicted, (ExpertKey{0, 2}));
  EXPECT_EQ(table.find({0, 2}), kNoSlot);
  EXPECT_EQ(table.take({0, 5})->evicted, (ExpertKey{0, 3}));
  EXPECT_EQ(table.take({0, 6})->evicted, (ExpertKey{0, 1}));
}

TEST(SlotTable, NeverEvictsWhatIsPinned) {
  const std::vector<uint32_t> n_experts = {100};
  SlotTable table(plan_of({2}, {0}), n_experts);
  const SlotIndex oldest = load(table, {0, 1});
  table.pin(oldest);
  const SlotIndex other = load(table, {0, 2});
  EXPECT_EQ(table.take({0, 3})->evicted, (ExpertKey{0, 2}));
  EXPECT_FALSE(table.take({0, 4}).has_value());  // both are pinned now
  EXPECT_EQ(table.find({0, 1}), oldest);
  table.unpin(other);
  EXPECT_EQ(table.take({0, 4})->evicted, (ExpertKey{0, 3}));
}

TEST(SlotTable, LayersOfAnotherSizeHaveTheirOwnSlots) {
  const std::vector<uint32_t> n_experts = {100, 100, 100};
  SlotTable table(plan_of({1, 1}, {0, 1, 0}), n_experts);
  load(table, {0, 1});
  const SlotIndex large = load(table, {1, 1});
  EXPECT_EQ(table.range(large).bytes, 128u);
  EXPECT_EQ(table.take({2, 1})->evicted, (ExpertKey{0, 1}));
  EXPECT_EQ(table.find({1, 1}), large);
  EXPECT_EQ(table.capacity(1), 1u);
}

TEST(SlotTable, ADisownedSlotIsFreeAfterItsLastPin) {
  const std::vector<uint32_t> n_experts = {100};
  SlotTable table(plan_of({2}, {0}), n_experts);
  const SlotIndex slot = table.take({0, 1})->slot;
  table.pin(slot);
  load(table, {0, 2});
  table.disown(slot);
  EXPECT_EQ(table.find({0, 1}), kNoSlot);
  table.unpin(slot);
  EXPECT_EQ(table.take({0, 3})->evicted, (ExpertKey{0, 2}));  // not yet free
  table.unpin(slot);
  const auto taken = table.take({0, 4});
  EXPECT_EQ(taken->slot, slot);
  EXPECT_FALSE(taken->evicted.has_value());
}

// The same, written as plainly as possible: who is resident in order of use, who is pinned.
struct Model {
  size_t n_slots = 0;
  std::deque<ExpertKey> unpinned;  // least recently used first
  std::map<ExpertKey, uint32_t> pins;

  [[nodiscard]] bool has(ExpertKey key) const {
    return pins.contains(key) || std::ranges::find(unpinned, key) != unpinned.end();
  }
  // What taking a slot must evict; nullopt inside: a free one.
  std::optional<std::optional<ExpertKey>> take(ExpertKey key) {
    std::optional<ExpertKey> evicted;
    if (pins.size() + unpinned.size() == n_slots) {
      if (unpinned.empty()) return std::nullopt;
      evicted = unpinned.front();
      unpinned.pop_front();
    }
    pins[key] = 1;
    return evicted;
  }
  void pin(ExpertKey key) {
    std::erase(unpinned, key);
    ++pins[key];
  }
  void unpin(ExpertKey key) {
    if (--pins[key] > 0) return;
    pins.erase(key);
    unpinned.push_back(key);
  }
};

TEST(SlotTable, DoesWhatTheModelDoes) {
  const std::vector<uint32_t> n_experts = {20, 20, 20};
  const std::vector<uint32_t> class_of_layer = {0, 1, 0};
  SlotTable table(plan_of({7, 4}, class_of_layer), n_experts);
  std::array<Model, 2> models = {Model{.n_slots = 7, .unpinned = {}, .pins = {}},
                                 Model{.n_slots = 4, .unpinned = {}, .pins = {}}};
  RandomStream random(3);
  for (int step = 0; step < 200000; ++step) {
    const ExpertKey key{static_cast<uint32_t>(random.below(3)),
                        static_cast<uint32_t>(random.below(20))};
    Model& model = models[class_of_layer[key.layer]];
    const SlotIndex slot = table.find(key);
    ASSERT_EQ(slot != kNoSlot, model.has(key)) << step;
    if (slot == kNoSlot) {
      const auto expected = model.take(key);
      const auto taken = table.take(key);
      ASSERT_EQ(taken.has_value(), expected.has_value()) << step;
      if (taken) {
        ASSERT_EQ(taken->evicted, *expected) << step;
      }
    } else if (model.pins.contains(key) && random.below(3) != 0) {
      model.unpin(key);
      table.unpin(slot);
    } else {
      model.pin(key);
      table.pin(slot);
    }
  }
}

}  // namespace
}  // namespace godwit::experts
