#include "experts/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "testing/expert_model.h"
#include "testing/expert_reads.h"
#include "testing/expert_store.h"

namespace godwit::experts {
namespace {

using testing::ExpertLayer;
using testing::ExpertModel;
using testing::ExpertShards;
using testing::plan_with;
using testing::ReadGate;
using testing::TestStore;

constexpr ExpertLayer kLarge = {16, {TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16}};
constexpr ExpertLayer kSmall = {12, {TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0}};
constexpr ExpertLayer kDense = {};

TEST(ExpertStore, DeliversEveryExpertWithItsBytes) {
  for (const ExpertShards shards : {ExpertShards::kOneFile, ExpertShards::kOnePerLayer}) {
    const ExpertModel model({kLarge, kSmall, kLarge}, shards);
    for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
      const TestStore store(model, plan_with(model, 5),
                            {.n_read_threads = 3, .read_mode = mode, .read = {}});
      for (uint32_t layer = 0; layer < 3; ++layer) {
        for (uint32_t e = 0; e + 5 <= model.source().n_experts(layer); ++e) {
          EXPECT_EQ(store.use(layer, {e + 4, e, e + 2}), "");
        }
      }
      EXPECT_EQ(store.total().failed_reads, 0u);
    }
  }
}

TEST(ExpertStore, FullReadsEachExpertOnce) {
  const ExpertModel model({kLarge, kDense, kSmall}, ExpertShards::kOneFile);
  const SlotPlan plan = *plan_slots(model.sizes(), {CacheKind::kFull, 0}, 1);
  const TestStore store(model, plan, {});
  ASSERT_TRUE(store.store->preload().has_value());
  const LayerStatistics before = store.total();
  EXPECT_EQ(before.bytes_read,
            16 * model.source().file_bytes(0) + 12 * model.source().file_bytes(2));
  for (uint32_t e = 0; e < 12; ++e) EXPECT_EQ(store.use(2, {e, 11 - e}), "");
  EXPECT_EQ(store.total().misses, before.misses);
  EXPECT_EQ(store.total().bytes_read, before.bytes_read);
}

TEST(ExpertStore, MappedGivesTheFilesOwnBytes) {
  const ExpertModel model({kLarge, kSmall}, ExpertShards::kOnePerLayer);
  const SlotPlan plan = *plan_slots(model.sizes(), {CacheKind::kMapped, 0}, 4);
  auto store = ExpertStore::create(model.source(), plan, {}, {});
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->capacity(1), 12u);
  const std::vector<uint32_t> experts = {7, 0, 7};
  store->hint(1, experts);
  auto lease = store->acquire(1, experts);
  ASSERT_TRUE(lease.has_value());
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto ready = lease->next();
    ASSERT_TRUE(ready.has_value() && ready->has_value());
    EXPECT_EQ((*ready)->index, i);
    for (size_t part = 0; part < kParts; ++part) {
      EXPECT_EQ((*ready)->mapped[part].data(), model.source().mapped({1, experts[i]})[part].data());
    }
  }
  EXPECT_FALSE((*lease->next()).has_value());
}

TEST(ExpertStore, GivesHitsWhileMissesAreRead) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  ReadGate gate;
  const TestStore store(
      model, plan_with(model, 4),
      {.n_read_threads = 2, .read_mode = ReadMode::kDirect, .read = gate.reads()});
  ASSERT_EQ(store.use(0, {3, 5}), "");
  gate.close();
  const std::vector<uint32_t> experts = {8, 5, 9, 3};
  auto lease = store.store->acquire(0, experts);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->n_ready(), 2u);
  EXPECT_EQ((*lease->next())->index, 1u);
  EXPECT_EQ((*lease->next())->index, 3u);
  gate.open();
  std::set<size_t> late;
  for (int i = 0; i < 2; ++i) {
    const auto ready = lease->next();
    ASSERT_TRUE(ready.has_value() && ready->has_value());
    EXPECT_TRUE(store.holds(**ready, 0, experts));
    late.insert((*ready)->index);
  }
  EXPECT_EQ(late, (std::set<size_t>{0, 2}));
  EXPECT_EQ(store.total().hits, 2u);
  EXPECT_EQ(store.total().misses, 4u);
}

TEST(ExpertStore, PinsHitsBeforeItChoosesVictims) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  const TestStore store(model, plan_with(model, 3), {});
  ASSERT_EQ(store.use(0, {1, 2, 3}), "");
  // 1 is the least recently used, and asked for after a miss.
  ASSERT_EQ(store.use(0, {4, 1}), "");
  EXPECT_EQ(store.total().hits, 1u);
  EXPECT_EQ(store.use(0, {1, 4, 3}), "");
  EXPECT_EQ(store.total().hits, 4u);
}

TEST(ExpertStore, LeavesSlotsOfOtherLeasesAlone) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  const TestStore store(model, plan_with(model, 3), {});
  const std::vector<uint32_t> held = {1, 2};
  auto lease = store.store->acquire(0, held);
  ASSERT_TRUE(lease.has_value());
  std::vector<Resident> residents;
  while (const auto ready = *lease->next()) residents.push_back(*ready);
  for (uint32_t e = 3; e < 12; ++e) EXPECT_EQ(store.use(0, {e}), "");
  const std::string refused = store.use(0, {4, 5});
  EXPECT_NE(refused.find("other requests hold all 3"), std::string::npos) << refused;
  for (const Resident& resident : residents) EXPECT_TRUE(store.holds(resident, 0, held));
  lease->release();
  EXPECT_EQ(store.use(0, {4, 5, 6}), "");
}

TEST(ExpertStore, RefusesWhatCannotBe) {
  const ExpertModel model({kSmall, kDense}, ExpertShards::kOneFile);
  const TestStore store(model, plan_with(model, 3), {});
  EXPECT_EQ(store.store->capacity(0), 3u);
  EXPECT_NE(store.use(0, {1, 2, 3, 4}).find("4 experts of layer 0 asked for at once"),
            std::string::npos);
  EXPECT_NE(store.use(0, {12}).find("expert 12 asked for, layer 0 has 12"), std::string::npos);
  EXPECT_NE(store.use(1, {0}).find("layer 1 has 0"), std::string::npos);
  EXPECT_NE(store.use(2, {0}).find("layer 2 asked for"), std::string::npos);
  store.hint(5, {1});
  store.hint(0, {99});
  EXPECT_EQ(store.use(0, {1, 1, 2, 2, 3, 3}), "");
  EXPECT_EQ(store.use(0, {}), "");
  EXPECT_EQ(store.total().prefetches, 0u);
}

TEST(ExpertStore, ALeaseMayEndBeforeItsReads) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  ReadGate gate;
  const TestStore store(
      model, plan_with(model, 4),
      {.n_read_threads = 1, .read_mode = ReadMode::kDirect, .read = gate.reads()});
  gate.close();
  {
    const auto lease = store.acquire(0, {1, 2, 3, 4});
    ASSERT_TRUE(lease.has_value());
    gate.wait_for(1);
  }
  gate.open();
  EXPECT_EQ(store.use(0, {5, 6, 7, 8}), "");
  // 1 was being read, the others had not been begun.
  EXPECT_EQ(store.total().bytes_read, 5 * model.source().file_bytes(0));
}

// Requests as a router makes them, against least-recently-used lists written plainly.
uint64_t hits_of_random_requests(const ExpertModel& model, uint32_t n_slots, uint64_t seed) {
  const SlotPlan plan = plan_with(model, n_slots);
  const TestStore store(model, plan, {.n_read_threads = 2, .read_mode = {}, .read = {}});
  std::map<uint32_t, std::list<ExpertKey>> resident;  // of each class, most recent last
  uint64_t hits = 0;
  RandomStream random(seed);
  for (int step = 0; step < 400; ++step) {
    const auto layer = static_cast<uint32_t>(step % 3);
    std::set<uint32_t> chosen;
    while (chosen.size() < 3) {
      // The smaller of two: low numbers are popular.
      const uint64_t n = model.source().n_experts(layer);
      chosen.insert(static_cast<uint32_t>(std::min(random.below(n), random.below(n))));
    }
    const std::vector<uint32_t> experts(chosen.begin(), chosen.end());
    EXPECT_EQ(store.use(layer, experts), "") << step;
    const uint32_t size_class = plan.class_of_layer[layer];
    std::list<ExpertKey>& list = resident[size_class];
    for (const uint32_t e : experts) {
      hits += list.remove({layer, e});  // C++20: how many there were
    }
    for (const uint32_t e : experts) list.push_back({layer, e});
    while (list.size() > plan.classes[size_class].n_slots) list.pop_front();
  }
  EXPECT_EQ(store.total().hits, hits) << n_slots;
  EXPECT_EQ(store.store->statistics().slot_bytes, plan.bytes);
  return hits;
}

TEST(ExpertStore, KeepsWhatAPlainLruListKeeps) {
  const ExpertModel model({kLarge, kSmall, kLarge}, ExpertShards::kOnePerLayer);
  uint64_t before = 0;
  for (const uint32_t n_slots : {3u, 4u, 7u, 12u, 20u, 40u}) {
    const uint64_t hits = hits_of_random_requests(model, n_slots, 11);
    EXPECT_GE(hits, before) << "a larger cache has fewer hits";
    before = hits;
  }
}

TEST(ExpertStore, TwoCallersAndHintsAtTheSameTime) {
  const ExpertModel model({kLarge, kSmall, kLarge}, ExpertShards::kOneFile);
  const TestStore store(model, plan_with(model, 7), {});
  const auto work = [&](uint64_t seed) {
    RandomStream random(seed);
    for (int step = 0; step < 300; ++step) {
      const auto layer = static_cast<uint32_t>(random.below(3));
      const auto first = static_cast<uint32_t>(random.below(10));
      if (random.below(2) == 0) store.hint(layer, {first, first + 1});
      EXPECT_EQ(store.use(layer, {first + 1, first, static_cast<uint32_t>(random.below(12))}), "");
    }
  };
  std::jthread other(work, 1);
  work(2);
}

}  // namespace
}  // namespace godwit::experts
