// What is wrong with the files ends the request that meets it, says where, and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "experts/store.h"
#include "os/memory.h"
#include "testing/expert_model.h"
#include "testing/expert_reads.h"
#include "testing/expert_store.h"

namespace godwit::experts {
namespace {

using testing::ExpertLayer;
using testing::ExpertModel;
using testing::ExpertShards;
using testing::plan_with;
using testing::TestStore;

constexpr ExpertLayer kLarge = {16, {TensorType::kQ4_0, TensorType::kQ8_0, TensorType::kF16}};
constexpr ExpertLayer kSmall = {12, {TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0}};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Whether a read of `to` from `offset` touches the slice.
bool touches(Slice slice, std::span<std::byte> to, uint64_t offset) {
  return offset < slice.offset + slice.bytes && slice.offset < offset + to.size();
}

TEST(ExpertStoreFaults, AnInputErrorNamesTheTensorAndEndsOneRequest) {
  const ExpertModel model({kLarge, kSmall}, ExpertShards::kOneFile);
  const Slice broken = model.source().slice({0, 7}, Part::kUp);
  std::atomic<bool> failing = true;
  const auto read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (failing && touches(broken, to, offset)) return -EIO;
    return testing::plain_read(file, to, offset);
  };
  const TestStore store(model, plan_with(model, 4),
                        {.n_read_threads = 1, .read_mode = ReadMode::kDirect, .read = read});
  const std::string error = store.use(0, {3, 7});
  EXPECT_TRUE(contains(error, "'blk.0.ffn_up_exps.weight' (layer 0, expert 7) of ")) << error;
  EXPECT_TRUE(contains(error, "model.gguf: Input/output error")) << error;
  EXPECT_EQ(store.use(0, {3, 11, 12}), "");
  EXPECT_EQ(store.use(1, {7}), "");
  EXPECT_EQ(store.total().failed_reads, 1u);
  failing = false;
  EXPECT_EQ(store.use(0, {7, 3, 11, 12}), "");  // no slot has been lost
}

TEST(ExpertStoreFaults, TheOthersOfTheRequestCanStillBeHad) {
  const ExpertModel model({kLarge}, ExpertShards::kOneFile);
  const Slice broken = model.source().slice({0, 7}, Part::kDown);
  const auto read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (touches(broken, to, offset)) return -EIO;
    return testing::plain_read(file, to, offset);
  };
  const TestStore store(model, plan_with(model, 4),
                        {.n_read_threads = 2, .read_mode = ReadMode::kDirect, .read = read});
  const std::vector<uint32_t> experts = {3, 7, 11};
  auto lease = store.store->acquire(0, experts);
  ASSERT_TRUE(lease.has_value());
  size_t n_good = 0;
  size_t n_bad = 0;
  while (n_good + n_bad < 3) {
    const auto ready = lease->next();
    if (!ready) {
      ++n_bad;
      continue;
    }
    ASSERT_TRUE(ready->has_value());
    EXPECT_TRUE(store.holds(**ready, 0, experts));
    ++n_good;
  }
  EXPECT_EQ(n_bad, 1u);
  EXPECT_FALSE((*lease->next()).has_value());
}

// Reads that wait at the gate; n_failing of them then fail.
ReadFunction failing_reads(testing::ReadGate& gate, std::atomic<int>& n_failing) {
  return [&n_failing, held = gate.reads()](int file, std::span<std::byte> to,
                                           uint64_t offset) -> int64_t {
    const int64_t got = held(file, to, offset);
    return n_failing.fetch_sub(1) > 0 ? -EIO : got;
  };
}

// A hint's read, or one of a request that has ended meanwhile, may fail for reasons that are gone.
TEST(ExpertStoreFaults, AFailureThatAnotherBeganIsReadAgainOnce) {
  const ExpertModel model({kLarge}, ExpertShards::kOneFile);
  testing::ReadGate gate;
  std::atomic<int> n_failing = 0;
  const TestStore store(model, plan_with(model, 4),
                        {.n_read_threads = 1,
                         .read_mode = ReadMode::kDirect,
                         .read = failing_reads(gate, n_failing)});
  const std::vector<uint32_t> experts = {7};
  for (const auto& [failures, passes] : {std::pair{1, true}, {2, false}}) {
    n_failing = failures;
    gate.close();
    store.hint(0, {7});
    gate.wait_for(1);
    auto lease = store.store->acquire(0, experts);
    ASSERT_TRUE(lease.has_value());
    gate.open();
    const std::string error = store.drain(*lease, 0, experts);
    EXPECT_EQ(error.empty(), passes) << error;
    lease->release();
    n_failing = 0;
    EXPECT_EQ(store.use(0, {1, 2, 3, 4}), "");  // and 7 is forgotten
  }
  EXPECT_EQ(store.total().failed_reads, 3u);
}

TEST(ExpertStoreFaults, AFailureThatAnotherRequestMadeGoodIsGivenItsSlot) {
  const ExpertModel model({kLarge}, ExpertShards::kOneFile);
  testing::ReadGate gate;
  std::atomic<int> n_failing = 1;
  const TestStore store(model, plan_with(model, 4),
                        {.n_read_threads = 1,
                         .read_mode = ReadMode::kDirect,
                         .read = failing_reads(gate, n_failing)});
  const std::vector<uint32_t> experts = {7};
  gate.close();
  store.hint(0, {7});
  gate.wait_for(1);
  auto joined = store.store->acquire(0, experts);
  ASSERT_TRUE(joined.has_value());
  gate.open();
  while (store.total().failed_reads == 0) std::this_thread::yield();
  auto other = store.store->acquire(0, experts);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(store.drain(*other, 0, experts), "");
  EXPECT_EQ(store.drain(*joined, 0, experts), "");
  other->release();
  joined->release();
  // Neither left a pin behind.
  EXPECT_EQ(store.use(0, {1, 2, 3, 4}), "");
}

TEST(ExpertStoreFaults, ShortAndInterruptedReadsAreContinued) {
  const ExpertModel model({kLarge, kSmall}, ExpertShards::kOneFile);
  std::atomic<uint64_t> count = 0;
  const auto read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    const uint64_t n = count++;
    if (n % 3 == 0) return -EINTR;
    const size_t some = n % 3 == 1 ? 4096 : 1 + n * 977 % 5000;
    // A direct read wants whole blocks, whatever part of it is then said to have arrived.
    const int64_t got = testing::plain_read(file, to, offset);
    return std::min(got, static_cast<int64_t>(some));
  };
  for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
    const TestStore store(model, plan_with(model, 4),
                          {.n_read_threads = 2, .read_mode = mode, .read = read});
    for (uint32_t e = 0; e < 12; ++e) EXPECT_EQ(store.use(e % 2, {e}), "");
  }
}

TEST(ExpertStoreFaults, WhereDirectReadsAreRefusedTheyBecomeBuffered) {
  const ExpertModel model({kLarge}, ExpertShards::kOneFile);
  std::atomic<uint64_t> refused = 0;
  const auto read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (refused == 0) {
      ++refused;
      return -EINVAL;
    }
    return testing::plain_read(file, to, offset);
  };
  auto reader = SliceReader::open(model.source(), ReadMode::kDirect, read);
  ASSERT_TRUE(reader.has_value());
  if (reader->mode(0) != ReadMode::kDirect) GTEST_SKIP() << "no O_DIRECT in this folder";
  auto staging = AlignedBuffer::create(reader->staging_bytes(), kDirectAlignment);
  ASSERT_TRUE(staging.has_value());
  const auto bytes = reader->read({0, 15}, staging->bytes());
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  EXPECT_EQ(reader->mode(0), ReadMode::kBuffered);
  for (size_t part = 0; part < kParts; ++part) {
    EXPECT_TRUE(std::ranges::equal((*bytes)[part], model.source().mapped({0, 15})[part]));
  }
}

TEST(ExpertStoreFaults, ATruncatedFileIsSaidToBeSo) {
  for (const ReadMode mode : {ReadMode::kDirect, ReadMode::kBuffered}) {
    const ExpertModel model({kSmall, kLarge}, ExpertShards::kOneFile);
    const TestStore store(model, plan_with(model, 3),
                          {.n_read_threads = 2, .read_mode = mode, .read = {}});
    const Slice first = model.source().slice({1, 0}, Part::kGate);
    std::filesystem::resize_file(model.file().path(), first.offset + first.bytes / 2);
    const std::string error = store.use(1, {0});
    EXPECT_TRUE(contains(error, "'blk.1.ffn_gate_exps.weight' (layer 1, expert 0)")) << error;
    EXPECT_TRUE(contains(error, "the file ends ")) << error;
    EXPECT_EQ(store.use(0, {0, 11}), "");
  }
}

TEST(ExpertStoreFaults, AMappedFileIsLookedAtBeforeItIsTouched) {
  const ExpertModel model({kSmall, kLarge}, ExpertShards::kOneFile);
  const SlotPlan plan = *plan_slots(model.sizes(), {CacheKind::kMapped, 0}, 4);
  auto store = ExpertStore::create(model.source(), plan, {}, {});
  ASSERT_TRUE(store.has_value());
  std::filesystem::resize_file(model.file().path(),
                               model.source().slice({1, 3}, Part::kDown).offset);
  const std::vector<uint32_t> experts = {3};
  EXPECT_TRUE(store->acquire(0, experts).has_value());
  const auto refused = store->acquire(1, experts);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(contains(refused.error().message, "'blk.1.ffn_down_exps.weight'"));
  EXPECT_TRUE(contains(refused.error().message, "but the file now has"));
}

TEST(ExpertStoreFaults, WhatThePackerRefusesIsNotKept) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  const SlotPlan plan = plan_with(model, 2);
  int n_calls = 0;
  const auto pack = [&](const PackRequest& request) -> Status {
    ++n_calls;
    if (request.key.expert == 5) return fail("no kernel");
    return {};
  };
  auto store = ExpertStore::create(model.source(), plan, pack,
                                   {.n_read_threads = 1, .read_mode = {}, .read = {}});
  ASSERT_TRUE(store.has_value());
  for (int i = 0; i < 3; ++i) {
    const std::vector<uint32_t> experts = {5};
    auto lease = store->acquire(0, experts);
    const auto ready = lease->next();
    ASSERT_FALSE(ready.has_value());
    EXPECT_EQ(ready.error().message, "experts: cannot pack layer 0, expert 5: no kernel");
  }
  EXPECT_EQ(n_calls, 3);
}

TEST(ExpertStoreFaults, AFailedHintIsForgotten) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  std::atomic<int> n_failing = 1;
  const auto read = [&](int file, std::span<std::byte> to, uint64_t offset) -> int64_t {
    if (n_failing > 0) {
      --n_failing;
      return -EIO;
    }
    return testing::plain_read(file, to, offset);
  };
  const TestStore store(model, plan_with(model, 2),
                        {.n_read_threads = 1, .read_mode = ReadMode::kDirect, .read = read});
  store.hint(0, {4});
  while (store.total().failed_reads == 0) std::this_thread::yield();
  EXPECT_EQ(store.use(0, {4, 5}), "");
  EXPECT_EQ(store.total().misses, 2u);
}

TEST(ExpertStoreFaults, AMissingFileIsNamed) {
  const ExpertModel model({kSmall}, ExpertShards::kOneFile);
  std::filesystem::remove(model.file().path());
  const auto refused = ExpertStore::create(model.source(), plan_with(model, 2),
                                           [](const PackRequest&) -> Status { return {}; }, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(contains(refused.error().message, "model.gguf: No such file"))
      << refused.error().message;
}

}  // namespace
}  // namespace godwit::experts
