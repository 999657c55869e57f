#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "experts/store.h"
#include "testing/expert_model.h"
#include "testing/expert_reads.h"
#include "testing/expert_store.h"

namespace godwit::experts {
namespace {

using testing::ExpertLayer;
using testing::ExpertMemory;
using testing::ExpertModel;
using testing::ExpertShards;
using testing::plan_with;
using testing::ReadGate;
using testing::TestStore;

constexpr ExpertLayer kSmall = {12, {TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0}};

class ExpertStoreHints : public ::testing::Test {
 protected:
  // Two layers that share slots.
  ExpertModel model_{{kSmall, kSmall}, ExpertShards::kOneFile};
  ReadGate gate_;

  StoreOptions options(uint32_t n_threads) {
    return {.n_read_threads = n_threads, .read_mode = ReadMode::kDirect, .read = gate_.reads()};
  }
  [[nodiscard]] uint64_t reads(uint64_t n_experts) const {
    return n_experts * model_.source().file_bytes(0);
  }
  static void wait_until_read(const TestStore& store, uint64_t bytes) {
    while (store.total().bytes_read < bytes) std::this_thread::yield();
  }
};

TEST_F(ExpertStoreHints, ReadAheadMakesHits) {
  const TestStore store(model_, plan_with(model_, 6), options(2));
  ASSERT_EQ(store.use(0, {1, 2}), "");
  store.hint(1, {4, 5});
  wait_until_read(store, reads(4));
  EXPECT_EQ(store.use(1, {4, 5, 6}), "");
  const LayerStatistics layer = store.store->statistics().layers[1];
  EXPECT_EQ(layer.prefetches, 2u);
  EXPECT_EQ(layer.prefetch_hits, 2u);
  EXPECT_EQ(layer.hits, 2u);
  EXPECT_EQ(layer.misses, 1u);
}

TEST_F(ExpertStoreHints, AreWaitedForWhenTheyAreLate) {
  const TestStore store(model_, plan_with(model_, 6), options(1));
  gate_.close();
  store.hint(1, {4, 5});  // 4 is being read, 5 is queued
  gate_.wait_for(1);
  const std::vector<uint32_t> experts = {5, 4};
  auto lease = store.store->acquire(1, experts);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->n_ready(), 0u);
  gate_.open();
  EXPECT_EQ(store.drain(*lease, 1, experts), "");
  EXPECT_EQ(store.total().prefetch_late, 2u);
  EXPECT_EQ(store.total().bytes_read, reads(2));
}

TEST_F(ExpertStoreHints, AreDroppedWhenTheyAreWrong) {
  const TestStore store(model_, plan_with(model_, 6), options(1));
  gate_.close();
  store.hint(1, {4, 5, 6});
  gate_.wait_for(1);
  auto lease = store.acquire(1, {7});
  ASSERT_TRUE(lease.has_value());
  gate_.open();
  ASSERT_TRUE(lease->next().has_value());
  EXPECT_EQ(store.total().prefetch_cancelled, 2u);
  EXPECT_EQ(store.total().bytes_read, reads(2));  // 4, which had been begun, and 7
}

TEST_F(ExpertStoreHints, GoAfterWhatIsAskedFor) {
  std::vector<ExpertKey> order;  // written by the one read thread
  ExpertMemory memory(plan_with(model_, 6));
  const auto pack = [&](const PackRequest& request) {
    order.push_back(request.key);
    return memory.packer()(request);
  };
  {
    auto store = ExpertStore::create(model_.source(), plan_with(model_, 6), pack, options(1));
    ASSERT_TRUE(store.has_value());
    gate_.close();
    store->hint(1, std::vector<uint32_t>{4, 5, 6});
    gate_.wait_for(1);
    auto lease = store->acquire(0, std::vector<uint32_t>{7});
    ASSERT_TRUE(lease.has_value());
    gate_.open();
    ASSERT_TRUE(lease->next().has_value());
    while (store->statistics().total().bytes_read < reads(4)) std::this_thread::yield();
  }
  EXPECT_EQ(order, (std::vector<ExpertKey>{{1, 4}, {0, 7}, {1, 5}, {1, 6}}));
}

TEST_F(ExpertStoreHints, TakeNoSlotThatIsPinned) {
  const TestStore store(model_, plan_with(model_, 3), options(2));
  const std::vector<uint32_t> held = {1, 2};
  auto lease = store.store->acquire(0, held);
  ASSERT_TRUE(lease.has_value());
  ASSERT_EQ(store.drain(*lease, 0, held), "");
  store.hint(1, {4, 5, 6, 7});
  EXPECT_EQ(store.total().prefetches, 1u);  // the one slot that is left
  wait_until_read(store, reads(3));
  lease->release();
  EXPECT_EQ(store.use(0, held), "");
  EXPECT_EQ(store.total().hits, 2u);
}

TEST_F(ExpertStoreHints, GiveTheirSlotsToWhatIsAskedFor) {
  // Both slots: 4 is being read for a hint, 5 queued. 1 and 2 need both of them.
  const TestStore store(model_, plan_with(model_, 2), options(1));
  gate_.close();
  store.hint(1, {4, 5});
  gate_.wait_for(1);
  std::jthread opener([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate_.open();
  });
  EXPECT_EQ(store.use(0, {1, 2}), "");
  const LayerStatistics layer = store.store->statistics().layers[1];
  EXPECT_EQ(layer.prefetch_cancelled, 1u);
  EXPECT_EQ(layer.prefetch_wasted, 1u);
  EXPECT_EQ(store.total().bytes_read, reads(3));
}

TEST_F(ExpertStoreHints, KeepWhatIsThereAlready) {
  const TestStore store(model_, plan_with(model_, 3), options(1));
  ASSERT_EQ(store.use(1, {1}), "");
  ASSERT_EQ(store.use(1, {2}), "");
  ASSERT_EQ(store.use(1, {3}), "");
  // 1 is the least recently used, and hinted: 2 must go.
  store.hint(1, {4, 1});
  wait_until_read(store, reads(4));
  EXPECT_EQ(store.use(1, {1, 4, 3}), "");
  EXPECT_EQ(store.total().hits, 3u);
}

TEST_F(ExpertStoreHints, CountWhatWasReadInVain) {
  const TestStore store(model_, plan_with(model_, 2), options(1));
  store.hint(1, {4});
  wait_until_read(store, reads(1));
  EXPECT_EQ(store.use(0, {1, 2}), "");
  EXPECT_EQ(store.total().prefetch_wasted, 1u);
  EXPECT_EQ(store.use(0, {1, 3}), "");
  EXPECT_EQ(store.total().prefetch_wasted, 1u);
}

}  // namespace
}  // namespace godwit::experts
