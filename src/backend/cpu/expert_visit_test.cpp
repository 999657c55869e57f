// A visit to experts by several threads, as the walker makes it: every expert once, whatever the
// slots; a read that fails ends the visit and no other.
#include "backend/cpu/expert_visit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <string>
#include <vector>

#include "os/thread_pool.h"
#include "testing/expert_model.h"
#include "testing/expert_reads.h"
#include "testing/expert_store.h"

namespace godwit::cpu {
namespace {

constexpr uint32_t kExperts = 24;

class ExpertVisitTest : public ::testing::Test {
 protected:
  static std::vector<testing::ExpertLayer> layers() {
    return {
        {kExperts, {TensorType::kQ4_K, TensorType::kQ8_0, TensorType::kF32}},
        {kExperts, {TensorType::kQ4_K, TensorType::kQ8_0, TensorType::kF32}},
    };
  }

  struct Setting {
    uint32_t n_slots = 0;
    size_t n_threads = 1;
    experts::ReadFunction read;
  };

  // What each thread saw, in its order; "" or an error.
  struct Outcome {
    std::vector<std::vector<uint32_t>> seen;
    std::string error;
    bool contents_right = true;
  };

  class Visitor {
   public:
    Visitor(const testing::ExpertModel& model, const Setting& setting)
        : model_(model),
          memory_(std::max<size_t>(plan(model, setting).bytes, 1)),
          pool_(setting.n_threads) {
      auto store =
          experts::ExpertStore::create(model.source(), plan(model, setting),
                                       [this](const experts::PackRequest& request) -> Status {
                                         std::byte* to = memory_.data() + request.slot.offset;
                                         for (const auto part : request.parts)
                                           to = std::ranges::copy(part, to).out;
                                         return {};
                                       },
                                       {.n_read_threads = 2, .read = setting.read});
      EXPECT_TRUE(store) << (store ? "" : store.error().message);
      store_ = std::make_unique<experts::ExpertStore>(*std::move(store));
      visit_ = std::make_unique<ExpertVisit>(*store_, memory_.data());
    }

    Outcome run(uint32_t layer, const std::vector<uint32_t>& ids, uint32_t then) {
      Outcome outcome{.seen = std::vector<std::vector<uint32_t>>(pool_.size()), .error = ""};
      std::atomic<bool> right = true;
      pool_.run([&](size_t thread) {
        if (thread == 0) visit_->begin(layer, ids, then);
        while (true) {
          if (thread == 0) visit_->advance();
          pool_.barrier();
          if (visit_->is_waiting()) visit_->wait(thread);
          for (const VisitedExpert& expert : visit_->batch()) {
            outcome.seen[thread].push_back(expert.id);
            if (!holds(layer, expert)) right = false;
          }
          if (visit_->is_last()) break;
          pool_.barrier();
        }
      });
      outcome.contents_right = right;
      if (!visit_->status()) outcome.error = visit_->status().error().message;
      visit_->end();
      return outcome;
    }

   private:
    static experts::SlotPlan plan(const testing::ExpertModel& model, const Setting& setting) {
      return testing::plan_with(model, setting.n_slots);
    }
    [[nodiscard]] bool holds(uint32_t layer, const VisitedExpert& expert) const {
      const std::byte* slot = expert.slot;
      for (const auto part : model_.source().mapped({layer, expert.id})) {
        if (!std::equal(part.begin(), part.end(), slot)) return false;
        slot += part.size();
      }
      return true;
    }

    const testing::ExpertModel& model_;
    std::vector<std::byte> memory_;
    ThreadPool pool_;
    std::unique_ptr<experts::ExpertStore> store_;
    std::unique_ptr<ExpertVisit> visit_;
  };

  static std::vector<uint32_t> sorted(std::vector<uint32_t> ids) {
    std::ranges::sort(ids);
    return ids;
  }

  testing::ExpertModel model_{layers(), testing::ExpertShards::kOneFile};
};

TEST_F(ExpertVisitTest, GivesEveryExpertOnceToEveryThreadWhateverTheSlots) {
  std::vector<uint32_t> all(kExperts);
  std::iota(all.begin(), all.end(), 0u);
  const std::vector<std::vector<uint32_t>> choices = {{}, {7}, {3, 4, 20}, all, {20, 21, 22}};
  for (const uint32_t n_slots : {1u, 2u, 3u, 7u, 24u, 48u}) {
    for (const size_t n_threads : {size_t{1}, size_t{3}}) {
      Visitor visitor(model_, {.n_slots = n_slots, .n_threads = n_threads, .read = {}});
      for (const std::vector<uint32_t>& chosen : choices) {
        for (const uint32_t layer : {0u, 1u}) {
          const Outcome outcome = visitor.run(layer, chosen, 1);
          EXPECT_EQ(outcome.error, "");
          EXPECT_TRUE(outcome.contents_right);
          EXPECT_EQ(sorted(outcome.seen[0]), chosen) << n_slots << " slots";
          for (const auto& seen : outcome.seen) EXPECT_EQ(seen, outcome.seen[0]);
        }
      }
    }
  }
}

TEST_F(ExpertVisitTest, GivesWhatIsThereBeforeWhatMustBeRead) {
  testing::ReadGate gate;
  Visitor visitor(model_, {.n_slots = 8, .n_threads = 2, .read = gate.reads()});
  EXPECT_EQ(visitor.run(0, {5, 6}, 0).error, "");
  const Outcome outcome = visitor.run(0, {1, 2, 5, 6}, 0);
  ASSERT_EQ(outcome.seen[0].size(), 4u);
  EXPECT_EQ(sorted({outcome.seen[0][0], outcome.seen[0][1]}), (std::vector<uint32_t>{5, 6}));
}

TEST_F(ExpertVisitTest, EndsWithTheErrorOfAReadAndCanBeginAgain) {
  std::atomic<int> n_good = 1 << 30;
  Visitor visitor(model_, {.n_slots = 6,
                           .n_threads = 3,
                           .read = [&](int file, std::span<std::byte> to, uint64_t at) -> int64_t {
                             if (n_good.fetch_sub(1) <= 0) return -EIO;
                             return testing::plain_read(file, to, at);
                           }});
  for (const int good : {0, 1, 5, 9, 14}) {
    n_good = good;
    const Outcome failed = visitor.run(0, {0, 3, 6, 9, 12, 15, 18, 21}, 1);
    EXPECT_NE(failed.error.find("Input/output error"), std::string::npos) << failed.error;
    EXPECT_TRUE(failed.contents_right);
    n_good = 1 << 30;
    // Other experts, so that the next failure has something to read.
    const Outcome after = visitor.run(0, {1, 2, 4, 5, 7, 8, 10, 11}, 0);
    EXPECT_EQ(after.error, "");
    EXPECT_TRUE(after.contents_right);
    EXPECT_EQ(after.seen[2].size(), 8u);
  }
}

}  // namespace
}  // namespace godwit::cpu
