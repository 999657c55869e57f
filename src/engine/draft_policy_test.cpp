// The policy against a machine of known costs and a text of known predictability.
#include "engine/draft_policy.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace godwit::engine {
namespace {

// Generates `n_tokens` where each drafted token is right with `chance`, a call of r rows takes
// 1 + (r - 1) * row_cost. Returns seconds per token; 1 is what it takes without drafts.
double seconds_per_token(DraftPolicy& policy, double chance, double row_cost, size_t n_tokens) {
  RandomStream random(7);
  double seconds = 0;
  size_t done = 0;
  while (done < n_tokens) {
    constexpr size_t kDraft = 15;
    const size_t n = policy.n_worth(4, kDraft);
    const double taken = 1 + static_cast<double>(n) * row_cost;
    policy.learn_cost(n + 1, taken);
    seconds += taken;
    // A draft is judged to its first mistake; the caller watches on where it verified less.
    size_t right = 0;
    while (right < kDraft && random.unit() < chance) {
      policy.learn_outcome(4, right++, DraftPolicy::Outcome::kRight);
    }
    if (right < kDraft) policy.learn_outcome(4, right, DraftPolicy::Outcome::kWrong);
    done += 1 + std::min(right, n);
  }
  return seconds / static_cast<double>(done);
}

TEST(DraftPolicy, VerifiesNothingBeforeItKnowsWhatACallCosts) {
  EXPECT_EQ(DraftPolicy().n_worth(4, 15), 0u);
}

TEST(DraftPolicy, TakesMuchWhereDraftsAreRightAndRowsAreCheap) {
  DraftPolicy policy;
  EXPECT_LT(seconds_per_token(policy, 0.95, 0.05, 2000), 0.3);
  EXPECT_GE(policy.n_worth(4, 15), 7u);
}

TEST(DraftPolicy, CostsLittleWhereDraftsAreWrong) {
  DraftPolicy policy;
  EXPECT_LT(seconds_per_token(policy, 0.05, 0.3, 2000), 1.03);
  EXPECT_EQ(policy.n_worth(4, 15), 0u);
}

TEST(DraftPolicy, CostsLittleWhereARowCostsAsMuchAsACall) {
  DraftPolicy policy;
  EXPECT_LT(seconds_per_token(policy, 0.9, 1.0, 4000), 1.05);
}

TEST(DraftPolicy, CountsWhatDraftingCosts) {
  DraftPolicy free;
  (void)seconds_per_token(free, 0.7, 0.1, 2000);
  const size_t n_free = free.n_worth(4, 15);
  DraftPolicy costly = free;
  costly.learn_draft_cost(4, 4 * 0.2);
  EXPECT_LT(costly.n_worth(4, 15), n_free);
  EXPECT_GT(costly.n_worth(4, 15), 0u);
  costly.learn_draft_cost(1, 50.0);
  for (int i = 0; i < 20; ++i) costly.learn_draft_cost(1, 50.0);
  EXPECT_EQ(costly.n_worth(4, 15), 0u);
}

TEST(DraftPolicy, NoticesThatItPaysAgain) {
  DraftPolicy policy;
  (void)seconds_per_token(policy, 0.02, 0.3, 2000);
  ASSERT_EQ(policy.n_worth(4, 15), 0u);
  (void)seconds_per_token(policy, 0.95, 0.3, 200);
  EXPECT_GT(policy.n_worth(4, 15), 0u);
}

TEST(DraftPolicy, KnowsLongMatchesFromShortOnes) {
  DraftPolicy policy;
  policy.learn_cost(1, 1.0);
  for (int i = 0; i < 200; ++i) {
    policy.learn_outcome(2, 0, DraftPolicy::Outcome::kWrong);
    policy.learn_outcome(4, 0, DraftPolicy::Outcome::kRight);
  }
  EXPECT_EQ(policy.n_worth(2, 15), 0u);
  EXPECT_GT(policy.n_worth(4, 15), 0u);
}

TEST(DraftPolicy, AHiccupOfTheMachineIsForgotten) {
  DraftPolicy policy;
  policy.learn_cost(1, 1.0);
  for (size_t i = 0; i < 100; ++i) policy.learn_outcome(4, i % 2, DraftPolicy::Outcome::kRight);
  for (const size_t rows : DraftPolicy::kRowCounts) {
    if (rows > 1) policy.learn_cost(rows, 1000.0);
  }
  ASSERT_EQ(policy.n_worth(4, 15), 0u);
  for (int i = 0; i < 1000; ++i) policy.learn_cost(1, 1.0);
  EXPECT_GT(policy.n_worth(4, 15), 0u);
}

TEST(DraftPolicy, NeverAsksForMoreThanThereIs) {
  DraftPolicy policy;
  policy.learn_cost(1, 1.0);
  for (size_t i = 0; i < 100; ++i) policy.learn_outcome(4, i % 2, DraftPolicy::Outcome::kRight);
  for (size_t n = 0; n <= DraftPolicy::kMaxDraft; ++n) EXPECT_LE(policy.n_worth(4, n), n);
}

}  // namespace
}  // namespace godwit::engine
