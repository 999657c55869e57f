// Each sampler alone, on distributions small enough to work out by hand.
#include "sampling/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace godwit::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Logits whose softmax is `probabilities`.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<TokenId> tokens(const std::vector<int32_t>& ids) {
  std::vector<TokenId> made;
  for (const int32_t id : ids) made.push_back(TokenId{id});
  return made;
}

// One step with everything it reads.
struct Bench {
  SamplerSettings settings;
  std::vector<TokenId> history;
  Position position;
  SequenceBreakers breakers;
  TokenNotes notes;
  Candidates candidates;

  explicit Bench(const std::vector<float>& logits) {
    candidates.fill(logits);
    notes.marked.resize(logits.size());
    notes.number.resize(logits.size());
  }
  void apply(void (*step)(Candidates&, const StepInput&)) {
    step(candidates, StepInput{.settings = settings,
                               .history = history,
                               .position = position,
                               .breakers = breakers,
                               .notes = notes});
  }
  // Ids in ascending order.
  [[nodiscard]] std::vector<int32_t> kept() const {
    std::vector<int32_t> ids;
    for (const Candidate& c : candidates.items()) ids.push_back(c.id);
    std::ranges::sort(ids);
    return ids;
  }
  [[nodiscard]] float logit(int32_t id) const {
    for (const Candidate& c : candidates.items()) {
      if (c.id == id) return c.logit;
    }
    return std::numeric_limits<float>::quiet_NaN();
  }
};

using Ids = std::vector<int32_t>;

TEST(TopK, KeepsTheBestInOrderAndTheLowestIdsAmongEquals) {
  Bench b({1, 3, 2, 3, 2, 2});
  b.settings.top_k = 4;
  b.apply(apply_top_k);
  Ids order;
  for (const Candidate& c : b.candidates.items()) order.push_back(c.id);
  EXPECT_EQ(order, (Ids{1, 3, 2, 4}));
}

TEST(TopK, MoreThanThereAreKeepsAll) {
  Bench b({1, 2});
  b.settings.top_k = 40;
  b.apply(apply_top_k);
  EXPECT_EQ(b.kept(), (Ids{0, 1}));
}

TEST(TopP, KeepsTheTokenThatReachesTheSum) {
  for (const auto& [p, expected] : std::vector<std::pair<float, Ids>>{{0.0f, {1}},
                                                                      {0.39f, {1}},
                                                                      {0.41f, {1, 3}},
                                                                      {0.69f, {1, 3}},
                                                                      {0.71f, {1, 2, 3}},
                                                                      {0.99f, {0, 1, 2, 3}}}) {
    Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
    b.settings.top_p = p;
    b.apply(apply_top_p);
    EXPECT_EQ(b.kept(), expected) << p;
  }
}

TEST(TopP, KeepsAtLeastMinKeep) {
  Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
  b.settings.top_p = 0.1f;
  b.settings.min_keep = 3;
  b.apply(apply_top_p);
  EXPECT_EQ(b.kept(), (Ids{1, 2, 3}));
}

// Far beyond the first stretch that is sorted.
TEST(TopP, IsRightOnALargeFlatVocabulary) {
  constexpr size_t kTokens = 20000;
  std::vector<float> logits(kTokens);
  for (size_t i = 0; i < kTokens; ++i) logits[i] = static_cast<float>(random_unit(1, i));
  Bench b(logits);
  b.settings.top_p = 0.5f;
  b.apply(apply_top_p);

  std::vector<Candidate> all;
  for (size_t i = 0; i < kTokens; ++i) all.push_back({static_cast<int32_t>(i), logits[i]});
  std::ranges::sort(all, ranks_before);
  double total = 0.0;
  for (const Candidate& c : all) total += std::exp(static_cast<double>(c.logit));
  Ids expected;
  double sum = 0.0;
  for (const Candidate& c : all) {
    expected.push_back(c.id);
    sum += std::exp(static_cast<double>(c.logit));
    if (sum >= total * 0.5) break;
  }
  std::ranges::sort(expected);
  EXPECT_EQ(b.kept(), expected);
}

TEST(MinP, ComparesWithTheLikeliest) {
  for (const auto& [p, expected] : std::vector<std::pair<float, Ids>>{
           {0.24f, {0, 1, 2, 3}}, {0.26f, {1, 2, 3}}, {0.51f, {1, 3}}, {0.76f, {1}}, {5.0f, {1}}}) {
    Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
    b.settings.min_p = p;
    b.apply(apply_min_p);
    EXPECT_EQ(b.kept(), expected) << p;
  }
}

TEST(MinP, KeepsAtLeastMinKeepOfTheBest) {
  Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
  b.settings.min_p = 0.9f;
  b.settings.min_keep = 2;
  b.apply(apply_min_p);
  EXPECT_EQ(b.kept(), (Ids{1, 3}));
}

TEST(MinP, KeepsTheOrderThatWasThere) {
  Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
  b.candidates.sort_top(2);
  b.settings.min_p = 0.4f;
  b.apply(apply_min_p);
  EXPECT_EQ(b.candidates.sorted(), 2u);
  EXPECT_EQ(b.candidates[0].id, 1);
  EXPECT_EQ(b.candidates[1].id, 3);
  EXPECT_EQ(b.candidates.size(), 3u);
}

// Entropy of (0.5, 0.25, 0.25) is 1.0397; the surprises are 0.693 and 1.386 twice, so that both
// are the same 0.3466 away but for rounding; with (0.6, 0.3, 0.1) the order is 1, 0, 2.
TEST(TypicalP, PrefersExpectedSurprise) {
  for (const auto& [p, expected] :
       std::vector<std::pair<float, Ids>>{{0.2f, {1}}, {0.5f, {0, 1}}, {0.95f, {0, 1, 2}}}) {
    Bench b(logits_of({0.6, 0.3, 0.1}));
    b.settings.typical_p = p;
    b.apply(apply_typical_p);
    EXPECT_EQ(b.kept(), expected) << p;
  }
}

TEST(TypicalP, KeepsAtLeastMinKeepAndIgnoresTheImpossible) {
  std::vector<float> logits = logits_of({0.6, 0.3, 0.1});
  logits.push_back(-kInf);
  Bench b(logits);
  b.settings.typical_p = 0.1f;
  b.settings.min_keep = 2;
  b.apply(apply_typical_p);
  EXPECT_EQ(b.kept(), (Ids{0, 1}));
}

// Logits 0 to 4: mean 2, standard deviation sqrt(2).
TEST(TopNSigma, MakesWhatIsFarBelowTheBestImpossible) {
  Bench b({0, 1, 2, 3, 4, -kInf});
  b.settings.top_n_sigma = 1.5f;
  b.apply(apply_top_n_sigma);
  EXPECT_EQ(b.candidates.size(), 6u);
  EXPECT_EQ(b.logit(0), -kInf);
  EXPECT_EQ(b.logit(1), -kInf);
  EXPECT_EQ(b.logit(2), 2.0f);
  EXPECT_EQ(b.logit(4), 4.0f);
}

TEST(Xtc, LeavesTheLeastLikelyOfTheTopChoices) {
  Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
  b.settings.xtc_probability = 1.0f;
  b.settings.xtc_threshold = 0.15f;
  b.apply(apply_xtc);
  EXPECT_EQ(b.kept(), (Ids{0, 2}));
}

TEST(Xtc, NeedsTwoTopChoicesAndRespectsMinKeep) {
  for (const auto& [threshold, min_keep] :
       std::vector<std::pair<float, int32_t>>{{0.35f, 0}, {0.15f, 3}}) {
    Bench b(logits_of({0.1, 0.4, 0.2, 0.3}));
    b.settings.xtc_probability = 1.0f;
    b.settings.xtc_threshold = threshold;
    b.settings.min_keep = min_keep;
    b.apply(apply_xtc);
    EXPECT_EQ(b.kept().size(), 4u) << threshold;
  }
}

TEST(Xtc, StrikesAsOftenAsItsProbability) {
  int strikes = 0;
  for (int32_t position = 0; position < 2000; ++position) {
    Bench b(logits_of({0.5, 0.5}));
    b.settings.xtc_probability = 0.25f;
    b.position = Position{position};
    b.apply(apply_xtc);
    strikes += b.candidates.size() == 1 ? 1 : 0;
  }
  EXPECT_NEAR(strikes, 500, 80);  // four standard deviations
}

TEST(Penalties, DivideThePositiveMultiplyTheNegativeAndCount) {
  Bench b({2, -2, 3, 0});
  b.settings.repeat_penalty = 2.0f;
  b.settings.frequency_penalty = 0.25f;
  b.settings.presence_penalty = 0.5f;
  b.history = tokens({0, 1, 1, 3});
  b.apply(apply_penalties);
  EXPECT_EQ(b.logit(0), 1.0f - 0.75f);
  EXPECT_EQ(b.logit(1), -4.0f - 1.0f);
  EXPECT_EQ(b.logit(2), 3.0f);
  EXPECT_EQ(b.logit(3), -0.75f);
}

TEST(Penalties, SeeOnlyTheLastTokens) {
  for (const auto& [last_n, expected] :
       std::vector<std::pair<int32_t, float>>{{1, 5.0f}, {2, 4.0f}, {-1, 3.0f}, {64, 3.0f}}) {
    Bench b({5, 5});
    b.settings.frequency_penalty = 1.0f;
    b.settings.penalty_last_n = last_n;
    b.history = tokens({0, 0, 1});
    b.apply(apply_penalties);
    EXPECT_EQ(b.logit(0), expected) << last_n;
  }
}

TEST(Penalties, ReachReorderedCandidates) {
  Bench b({1, 5, 3});
  b.candidates.sort_top(3);
  b.settings.presence_penalty = 4.5f;
  b.history = tokens({1});
  b.apply(apply_penalties);
  EXPECT_EQ(b.logit(1), 0.5f);
  EXPECT_EQ(b.candidates.max_logit(), 3.0f);
}

TEST(Temperature, DividesTheLogits) {
  Bench b({1, -3});
  b.settings.temperature = 0.5f;
  b.apply(apply_temperature);
  EXPECT_EQ(b.logit(0), 2.0f);
  EXPECT_EQ(b.logit(1), -6.0f);
}

TEST(Temperature, OfZeroKeepsTheFirstOfTheBest) {
  for (const float cold : {0.0f, -1.0f, 1e-42f}) {
    Bench b({1, 3, 3, 2});
    b.settings.temperature = cold;
    b.apply(apply_temperature);
    EXPECT_EQ(b.kept(), (Ids{1})) << cold;
  }
}

// A uniform distribution has all the entropy there is, a certain one has none.
TEST(Temperature, FollowsTheEntropy) {
  Bench uniform({2, 2, 2, 2});
  uniform.settings.temperature = 1.0f;
  uniform.settings.dynatemp_range = 0.5f;
  uniform.apply(apply_temperature);
  EXPECT_NEAR(uniform.logit(0), 2.0f / 1.5f, 1e-6f);
  Bench certain({100, 0, 0, 0});
  certain.settings = uniform.settings;
  certain.apply(apply_temperature);
  EXPECT_NEAR(certain.logit(0), 100.0f / 0.5f, 1e-4f);
  // Entropy of (1/2, 1/4, 1/4) over log 3 is 0.9464; squared, 0.8957.
  Bench between(logits_of({0.5, 0.25, 0.25}));
  between.settings = uniform.settings;
  between.settings.dynatemp_exponent = 2.0f;
  between.apply(apply_temperature);
  EXPECT_NEAR(between.logit(1), std::log(0.25) / (0.5 + 0.895669), 1e-4);
}

// A vocabulary of single characters: the id is the place in the alphabet, '.' is 26.
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz.";

std::vector<TokenId> spell(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(TokenId{static_cast<int32_t>(kAlphabet.find(c))});
  return ids;
}

TokenTexts alphabet() {
  return {.size = static_cast<int32_t>(kAlphabet.size()),
          .bytes = [](TokenId id) { return kAlphabet.substr(static_cast<size_t>(id.value), 1); },
          .encode = spell};
}

// What DRY takes from the logit of each character after `text`; 0 elsewhere.
float dry_penalty(std::string_view text, char next, const std::vector<std::string>& breakers,
                  int32_t last_n) {
  Bench b(std::vector<float>(kAlphabet.size(), 0.0f));
  b.settings.dry_multiplier = 1.0f;
  b.settings.dry_base = 2.0f;
  b.settings.dry_allowed_length = 2;
  b.settings.dry_penalty_last_n = last_n;
  b.history = spell(text);
  b.breakers = SequenceBreakers(breakers, alphabet());
  b.apply(apply_dry);
  return -b.logit(static_cast<int32_t>(kAlphabet.find(next)));
}

TEST(Dry, PenaltyGrowsWithTheRepetition) {
  EXPECT_EQ(dry_penalty("abcdzd", 'e', {}, -1), 0.0f);
  EXPECT_EQ(dry_penalty("abcdezcd", 'e', {}, -1), 1.0f);   // 2 tokens repeated: 2^0
  EXPECT_EQ(dry_penalty("abcdezbcd", 'e', {}, -1), 2.0f);  // 3: 2^1
  EXPECT_EQ(dry_penalty("abcdezabcd", 'e', {}, -1), 4.0f);
  EXPECT_EQ(dry_penalty("abcdezabcd", 'z', {}, -1), 0.0f);
}

TEST(Dry, TakesTheLongestOfSeveralRepetitions) {
  EXPECT_EQ(dry_penalty("cdexabcdeyabcd", 'e', {}, -1), 4.0f);
  EXPECT_EQ(dry_penalty("cdfxabcdeyabcd", 'f', {}, -1), 1.0f);
  EXPECT_EQ(dry_penalty("aaaaaa", 'a', {}, -1), 8.0f);  // overlapping itself: 5 repeated
}

TEST(Dry, BreakersEndARepetition) {
  EXPECT_EQ(dry_penalty("ab.cdzab.cd", 'z', {"."}, -1), 1.0f);  // only "cd" counts
  EXPECT_EQ(dry_penalty("ab.cdzab.cd", 'z', {}, -1), 8.0f);
  EXPECT_EQ(dry_penalty("abc.abc", '.', {"."}, -1), 0.0f);  // a breaker itself is never penalised
  EXPECT_EQ(dry_penalty("abxycdzabxycd", 'z', {"xy"}, -1), 1.0f);  // of two tokens
  EXPECT_EQ(dry_penalty("abxwcdzabxwcd", 'z', {"xy"}, -1), 16.0f);
  EXPECT_EQ(dry_penalty("cdzcd.", 'z', {"."}, -1), 0.0f);
}

TEST(Dry, LooksBackOnlySoFar) {
  EXPECT_EQ(dry_penalty("abcdezabcd", 'e', {}, 9), 2.0f);
  EXPECT_EQ(dry_penalty("abcdezabcd", 'e', {}, 7), 0.0f);
}

// Against the definition, on texts with much repetition.
TEST(Dry, AgreesWithASlowSearch) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string text;
    const size_t length = 3 + random_bits(seed, 0) % 40;
    for (size_t i = 0; i < length; ++i) {
      text += kAlphabet[random_bits(seed, i + 1) % 3];
    }
    for (const char next : {'a', 'b', 'c'}) {
      size_t longest = 0;
      for (size_t end = 1; end < text.size(); ++end) {  // text[end] == next follows a repetition
        if (text[end] != next) continue;
        size_t same = 0;
        while (same < end && text[end - 1 - same] == text[text.size() - 1 - same]) ++same;
        longest = std::max(longest, same);
      }
      const float expected = longest < 2 ? 0.0f : std::pow(2.0f, static_cast<float>(longest - 2));
      ASSERT_EQ(dry_penalty(text, next, {}, -1), expected) << text << " " << next;
    }
  }
}

TEST(Dry, OverlongRepetitionsStayFinite) {
  const std::string text(400, 'a');
  EXPECT_TRUE(std::isfinite(dry_penalty(text, 'a', {}, -1)));
}

TEST(Steps, LeaveTheNotesClear) {
  Bench b({1, 2, 3});
  b.settings.frequency_penalty = 1.0f;
  b.history = tokens({0, 0, 2});
  b.apply(apply_penalties);
  EXPECT_TRUE(b.notes.ids.empty());
  EXPECT_EQ(std::ranges::count(b.notes.marked, true), 0);
  EXPECT_EQ(std::ranges::count(b.notes.number, 0), 3);
}

}  // namespace
}  // namespace godwit::sampling
