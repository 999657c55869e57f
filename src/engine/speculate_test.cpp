// Speculation changes nothing but how soon tokens come: everything that generate() returns, and
// what it leaves in the session, is compared with a run without. Every comparison that claims to
// have met accepted drafts counts them.
#include "engine/speculate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "engine/generate.h"
#include "testing/models/tiny_hybrid.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::engine {
namespace {

using testing::kTinyVocab;

struct Outcome {
  GenerateResult result;
  std::vector<TokenId> timeline;  // what the session kept
  std::vector<float> next;        // logits after one more token: the KV is as it should be
};

class SpeculationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = folder_.file("tiny.gguf");
    const Status written = testing::write_tiny_llama(path, {.type = TensorType::kQ8_0});
    ASSERT_TRUE(written) << written.error().message;
    load(path, {});
  }

  void load(const std::filesystem::path& path, EngineSettings settings) {
    settings.model = path;
    settings.n_threads = 1;
    settings.n_context = 160;
    settings.max_logit_rows = 1 + DraftPolicy::kMaxDraft;
    Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
  }

  // 16 tokens, over and over.
  static std::vector<TokenId> repetitive_prompt() {
    std::vector<TokenId> ids;
    for (size_t i = 0; i < 64; ++i) {
      ids.push_back({static_cast<int32_t>(random_bits(3, i % 16) % 256)});
    }
    return ids;
  }

  Outcome run(const GenerateSettings& settings) { return run(settings, {}); }
  Outcome run(const GenerateSettings& settings, const GenerateCallbacks& callbacks) {
    Result<Session> session = engine_->new_session();
    EXPECT_TRUE(session);
    Result<GenerateResult> result = generate(*session, repetitive_prompt(), settings, callbacks);
    EXPECT_TRUE(result) << result.error().message;
    Outcome outcome{.result = std::move(*result),
                    .timeline = {session->tokens().begin(), session->tokens().end()},
                    .next = {}};
    if (session->tokens().size() < engine_->plan().n_context) {
      EXPECT_TRUE(session->append(TokenId{7}));
      outcome.next.assign(session->logits().begin(), session->logits().end());
    }
    return outcome;
  }

  static void expect_same(const Outcome& drafted, const Outcome& plain) {
    EXPECT_EQ(drafted.result.tokens, plain.result.tokens);
    EXPECT_EQ(drafted.result.text, plain.result.text);
    EXPECT_EQ(drafted.result.reason, plain.result.reason);
    EXPECT_EQ(drafted.result.n_decode_tokens, plain.result.n_decode_tokens);
    EXPECT_EQ(drafted.timeline, plain.timeline);
    ASSERT_EQ(drafted.next.size(), plain.next.size());
    EXPECT_TRUE(plain.next.empty() ||
                std::memcmp(drafted.next.data(), plain.next.data(), 4 * plain.next.size()) == 0);
    ASSERT_EQ(drafted.result.reports.size(), plain.result.reports.size());
    for (size_t i = 0; i < plain.result.reports.size(); ++i) {
      const TokenReport& a = drafted.result.reports[i];
      const TokenReport& b = plain.result.reports[i];
      EXPECT_EQ(a.token, b.token);
      EXPECT_EQ(a.logprob, b.logprob);
      ASSERT_EQ(a.top.size(), b.top.size());
      for (size_t k = 0; k < a.top.size(); ++k) EXPECT_EQ(a.top[k].token, b.top[k].token);
    }
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
};

GenerateSettings greedy(int64_t max_tokens) {
  GenerateSettings settings;
  settings.sampler.temperature = 0.0f;
  settings.max_tokens = max_tokens;
  settings.ignore_end = true;
  return settings;
}

GenerateSettings with_lookup(GenerateSettings settings) {
  settings.speculation = {.max_draft = 8, .min_draft = 0, .pace = DraftPace::kAlways, .source = {}};
  return settings;
}

// Proposes what really comes, with every `wrong_every`-th token (0: none) another.
GenerateSettings with_oracle(GenerateSettings settings, std::vector<TokenId> truth,
                             size_t wrong_every) {
  settings.speculation = {.max_draft = 8,
                          .min_draft = 0,
                          .pace = DraftPace::kAlways,
                          .source = [truth = std::move(truth), wrong_every](
                                        std::span<const TokenId> history, size_t n) {
                            Draft draft;
                            draft.match_length = DraftLookup::kMaxMatch;
                            for (size_t i = history.size();
                                 i < truth.size() && draft.tokens.size() < n; ++i) {
                              TokenId token = truth[i];
                              if (wrong_every > 0 && i % wrong_every == 0) {
                                token.value = (token.value + 1) % static_cast<int32_t>(kTinyVocab);
                              }
                              draft.tokens.push_back(token);
                            }
                            return draft;
                          }};
  return settings;
}

std::vector<TokenId> truth_of(const Outcome& plain, std::vector<TokenId> prompt) {
  prompt.insert(prompt.end(), plain.result.tokens.begin(), plain.result.tokens.end());
  return prompt;
}

TEST_F(SpeculationTest, GreedyTextIsTheSameFromFewerCalls) {
  const Outcome plain = run(greedy(80));
  const Outcome drafted = run(with_lookup(greedy(80)));
  expect_same(drafted, plain);
  EXPECT_GT(drafted.result.speculation.n_accepted, 20u);
  EXPECT_EQ(plain.result.n_decode_steps, 79u);
  EXPECT_EQ(drafted.result.n_decode_steps, 79u - drafted.result.speculation.n_accepted);
  EXPECT_LT(drafted.result.decode_traffic_bytes, plain.result.decode_traffic_bytes);
}

struct NamedSampler {
  const char* name;
  sampling::SamplerSettings settings;
};

std::vector<NamedSampler> samplers() {
  sampling::SamplerSettings cool;
  cool.temperature = 0.1f;
  sampling::SamplerSettings warm;
  warm.temperature = 0.9f;
  warm.top_k = 30;
  warm.top_p = 0.9f;
  sampling::SamplerSettings penalties = warm;
  penalties.repeat_penalty = 1.1f;
  penalties.frequency_penalty = 0.2f;
  penalties.presence_penalty = 0.1f;
  sampling::SamplerSettings dry = warm;
  dry.dry_multiplier = 0.8f;
  dry.xtc_probability = 0.3f;
  return {{"cool", cool}, {"warm", warm}, {"penalties", penalties}, {"dry", dry}};
}

TEST_F(SpeculationTest, SampledTextIsTheSameForEverySeedAndSampler) {
  for (const NamedSampler& sampler : samplers()) {
    for (const uint64_t seed : {1u, 2u, 3u}) {
      SCOPED_TRACE(::testing::Message() << sampler.name << ", seed " << seed);
      GenerateSettings settings = greedy(40);
      settings.sampler = sampler.settings;
      settings.sampler.seed = seed;
      const Outcome plain = run(settings);
      const std::vector<TokenId> truth = truth_of(plain, repetitive_prompt());
      for (const size_t wrong_every : {0u, 2u, 5u}) {
        const Outcome drafted = run(with_oracle(settings, truth, wrong_every));
        expect_same(drafted, plain);
        const SpeculationStats& stats = drafted.result.speculation;
        EXPECT_GT(stats.n_accepted, 10u) << wrong_every;
        EXPECT_TRUE(wrong_every == 0 || stats.n_drafted > stats.n_accepted);
      }
      expect_same(run(with_lookup(settings)), plain);
    }
  }
}

TEST_F(SpeculationTest, LookupIsAcceptedInSampledTextToo) {
  size_t n_accepted = 0;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    GenerateSettings settings = greedy(90);
    settings.sampler.temperature = 0.05f;
    settings.sampler.seed = seed;
    const Outcome drafted = run(with_lookup(settings));
    expect_same(drafted, run(settings));
    n_accepted += drafted.result.speculation.n_accepted;
  }
  EXPECT_GT(n_accepted, 10u);
}

TEST_F(SpeculationTest, AnAdaptivePaceChangesNoTextEither) {
  GenerateSettings settings = greedy(90);
  const Outcome plain = run(settings);
  settings.speculation.max_draft = 16;
  const Outcome drafted = run(settings);
  expect_same(drafted, plain);
}

TEST_F(SpeculationTest, DraftsThatAreAlwaysWrongChangeNothing) {
  const GenerateSettings settings = greedy(60);
  const Outcome plain = run(settings);
  const Outcome drafted = run(with_oracle(settings, truth_of(plain, repetitive_prompt()), 1));
  expect_same(drafted, plain);
  EXPECT_GT(drafted.result.speculation.n_drafted, 300u);
  EXPECT_EQ(drafted.result.speculation.n_accepted, 0u);
}

TEST_F(SpeculationTest, DraftsOutsideTheVocabularyAreCutOff) {
  GenerateSettings settings = greedy(20);
  const Outcome plain = run(settings);
  settings = with_oracle(settings, {}, 0);
  settings.speculation.source = [](std::span<const TokenId>, size_t n) {
    Draft draft;
    draft.match_length = 2;
    for (size_t i = 0; i < n + 5; ++i) draft.tokens.push_back({i % 3 == 2 ? -1 : 300});
    return draft;
  };
  expect_same(run(settings), plain);
}

TEST_F(SpeculationTest, ATokenLimitInsideADraftEndsThere) {
  const Outcome whole = run(greedy(60));
  const std::vector<TokenId> truth = truth_of(whole, repetitive_prompt());
  for (int64_t limit = 0; limit < 20; ++limit) {
    SCOPED_TRACE(limit);
    const Outcome drafted = run(with_oracle(greedy(limit), truth, 7));
    expect_same(drafted, run(greedy(limit)));
    EXPECT_TRUE(limit <= 5 || drafted.result.speculation.n_accepted > 0);
  }
}

TEST_F(SpeculationTest, TheEndOfTheContextInsideADraftEndsThere) {
  const Outcome plain = run(greedy(-1));
  EXPECT_EQ(plain.result.reason, StopReason::kContextFull);
  const std::vector<TokenId> truth = truth_of(plain, repetitive_prompt());
  for (const size_t wrong_every : {0u, 3u, 10u}) {
    const Outcome drafted = run(with_oracle(greedy(-1), truth, wrong_every));
    expect_same(drafted, plain);
    EXPECT_GT(drafted.result.speculation.n_accepted, 30u);
  }
}

// Varied text, unlike that of greedy choice from a random model.
GenerateSettings sampled(int64_t max_tokens, uint64_t seed) {
  GenerateSettings settings = greedy(max_tokens);
  settings.sampler.temperature = 0.9f;
  settings.sampler.seed = seed;
  return settings;
}

TEST_F(SpeculationTest, AnEndOfTextInsideADraftEndsThere) {
  const TokenId end = engine_->tokenizer().eos();
  size_t n_ended = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    GenerateSettings settings = sampled(40, seed);
    settings.ignore_end = false;
    settings.sampler.logit_bias = {{end, 3.0f}};
    const Outcome plain = run(settings);
    std::vector<TokenId> truth = truth_of(plain, repetitive_prompt());
    // Drafted to the end and past it.
    truth.push_back(end);
    for (int i = 0; i < 8; ++i) truth.push_back({65});
    const Outcome drafted = run(with_oracle(settings, truth, 0));
    expect_same(drafted, plain);
    const bool ended = plain.result.reason == StopReason::kEndOfText;
    n_ended += ended && drafted.result.speculation.n_accepted > 0 ? 1 : 0;
  }
  EXPECT_GT(n_ended, 2u);
}

TEST_F(SpeculationTest, AStopStringInsideADraftEndsThere) {
  size_t n_stopped = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    GenerateSettings settings = sampled(40, seed);
    const Outcome whole = run(settings);
    const std::vector<TokenId> truth = truth_of(whole, repetitive_prompt());
    const std::string_view text = whole.result.text;
    const auto cuts = [&](size_t i) {
      return (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    };
    for (size_t begin = 2; begin + 3 < std::min<size_t>(text.size(), 16); begin += 3) {
      if (!cuts(begin) || !cuts(begin + 3)) continue;
      settings.stops = {std::string(text.substr(begin, 3))};
      const Outcome plain = run(settings);
      const Outcome drafted = run(with_oracle(settings, truth, 0));
      expect_same(drafted, plain);
      const bool stopped = plain.result.reason == StopReason::kStopString;
      n_stopped += stopped && drafted.result.speculation.n_accepted > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(n_stopped, 2u);
}

TEST_F(SpeculationTest, LogprobsAreThoseOfEveryToken) {
  GenerateSettings settings = greedy(50);
  settings.n_logprobs = 3;
  const Outcome plain = run(settings);
  const Outcome drafted = run(with_oracle(settings, truth_of(plain, repetitive_prompt()), 6));
  EXPECT_EQ(drafted.result.reports.size(), 50u);
  EXPECT_GT(drafted.result.speculation.n_accepted, 20u);
  expect_same(drafted, plain);
}

TEST_F(SpeculationTest, ACancelledDraftLeavesTheTokensThatCame) {
  const std::vector<TokenId> truth = truth_of(run(greedy(40)), repetitive_prompt());
  const auto after = [](int n) {
    return GenerateCallbacks{
        .on_text = {}, .on_prompt = {}, .cancelled = [n]() mutable { return n-- == 0; }};
  };
  for (int n = 1; n < 20; n += 3) {
    const Outcome plain = run(greedy(40), after(n));
    EXPECT_EQ(plain.result.reason, StopReason::kCancelled);
    expect_same(run(with_oracle(greedy(40), truth, 0), after(n)), plain);
  }
}

TEST_F(SpeculationTest, WithoutRowsForItThereIsNone) {
  EngineSettings settings = engine_->settings();
  settings.max_logit_rows = 1;
  Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
  ASSERT_TRUE(engine);
  engine_ = std::move(*engine);
  const Outcome drafted = run(with_lookup(greedy(40)));
  EXPECT_EQ(drafted.result.speculation.n_drafted, 0u);
  expect_same(drafted, run(greedy(40)));
}

TEST_F(SpeculationTest, AMinimumKeepsShortDraftsBack) {
  const std::vector<TokenId> truth = truth_of(run(greedy(40)), repetitive_prompt());
  GenerateSettings settings = with_oracle(greedy(40), truth, 0);
  settings.speculation.min_draft = 9;  // more than max_draft
  EXPECT_EQ(run(settings).result.speculation.n_drafted, 0u);
  settings.speculation.min_draft = 8;
  EXPECT_GT(run(settings).result.speculation.n_drafted, 0u);
}

// The same with recurrent layers, whose states must be as if a wrong token had never run, and with
// the head that predicts further.
class HybridSpeculationTest : public SpeculationTest,
                              public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { load_hybrid(DraftPolicy::kMaxDraft, {}); }

  void load_hybrid(size_t max_tentative_rows,
                   const std::optional<experts::CachePolicy>& expert_cache) {
    const std::filesystem::path path = folder_.file("hybrid.gguf");
    const Status written =
        testing::write_tiny_hybrid(path, {.head = testing::TinyHead::kPredictsFurther});
    ASSERT_TRUE(written) << written.error().message;
    EngineSettings settings;
    settings.backend = GetParam();
    settings.max_tentative_rows = max_tentative_rows;
    settings.with_mtp = true;
    settings.expert_cache = expert_cache;
    load(path, settings);
  }
};

GenerateSettings with_head(GenerateSettings settings, size_t max_draft) {
  settings.speculation = {
      .max_draft = max_draft, .pace = DraftPace::kAlways, .drafter = Drafter::kOwnHead};
  return settings;
}

TEST_P(HybridSpeculationTest, GreedyTextIsTheSameFromFewerCalls) {
  const Outcome plain = run(greedy(80));
  for (const GenerateSettings& settings :
       {with_lookup(greedy(80)), with_head(greedy(80), 1), with_head(greedy(80), 5)}) {
    const Outcome drafted = run(settings);
    expect_same(drafted, plain);
    const SpeculationStats& stats = drafted.result.speculation;
    EXPECT_GT(stats.n_accepted, 10u);
    EXPECT_EQ(drafted.result.n_decode_steps, 79u - stats.n_accepted);
  }
}

TEST_P(HybridSpeculationTest, SampledTextIsTheSame) {
  size_t n_by_head = 0;
  for (const NamedSampler& sampler : samplers()) {
    SCOPED_TRACE(sampler.name);
    GenerateSettings settings = greedy(40);
    settings.sampler = sampler.settings;
    settings.sampler.seed = 4;
    const Outcome plain = run(settings);
    const std::vector<TokenId> truth = truth_of(plain, repetitive_prompt());
    for (const size_t wrong_every : {0u, 2u, 5u}) {
      const Outcome drafted = run(with_oracle(settings, truth, wrong_every));
      expect_same(drafted, plain);
      EXPECT_GT(drafted.result.speculation.n_accepted, 10u);
    }
    expect_same(run(with_lookup(settings)), plain);
    const Outcome by_head = run(with_head(settings, 3));
    expect_same(by_head, plain);
    n_by_head += by_head.result.speculation.n_accepted;
  }
  EXPECT_GT(n_by_head, 5u);
}

TEST_P(HybridSpeculationTest, DraftsThatAreAlwaysWrongChangeNothing) {
  const Outcome plain = run(greedy(60));
  const Outcome drafted = run(with_oracle(greedy(60), truth_of(plain, repetitive_prompt()), 1));
  expect_same(drafted, plain);
  EXPECT_GT(drafted.result.speculation.n_drafted, 300u);
  EXPECT_EQ(drafted.result.speculation.n_accepted, 0u);
}

TEST_P(HybridSpeculationTest, ATokenLimitInsideADraftEndsThere) {
  for (int64_t limit = 1; limit < 12; limit += 2) {
    SCOPED_TRACE(limit);
    const Outcome plain = run(greedy(limit));
    expect_same(run(with_head(greedy(limit), 4)), plain);
    const std::vector<TokenId> truth = truth_of(run(greedy(20)), repetitive_prompt());
    expect_same(run(with_oracle(greedy(limit), truth, 0)), plain);
  }
}

TEST_P(HybridSpeculationTest, TheEndOfTheContextInsideADraftEndsThere) {
  const Outcome plain = run(greedy(-1));
  EXPECT_EQ(plain.result.reason, StopReason::kContextFull);
  expect_same(run(with_head(greedy(-1), 6)), plain);
}

TEST_P(HybridSpeculationTest, AnAdaptivePaceChangesNoTextEither) {
  const Outcome plain = run(greedy(90));
  GenerateSettings settings = with_head(greedy(90), 6);
  settings.speculation.pace = DraftPace::kWherePays;
  expect_same(run(settings), plain);
}

TEST_P(HybridSpeculationTest, AnUnsureHeadDraftsLess) {
  GenerateSettings settings = with_head(greedy(60), 6);
  const size_t n_all = run(settings).result.speculation.n_drafted;
  settings.speculation.min_probability = 0.5f;
  const Outcome drafted = run(settings);
  EXPECT_LT(drafted.result.speculation.n_drafted, n_all);
  expect_same(drafted, run(greedy(60)));
}

TEST_P(HybridSpeculationTest, WithoutRowsToTakeBackThereIsNone) {
  load_hybrid(0, {});
  const Outcome drafted = run(with_lookup(greedy(40)));
  EXPECT_EQ(drafted.result.speculation.n_drafted, 0u);
  expect_same(drafted, run(greedy(40)));
}

// The head's own experts come from the file as those of the layers do.
TEST_P(HybridSpeculationTest, ExpertsReadFromTheFileChangeNothing) {
  const Outcome plain = run(greedy(40));
  for (const experts::CachePolicy& policy :
       {experts::CachePolicy{.kind = experts::CacheKind::kMapped},
        experts::CachePolicy{.kind = experts::CacheKind::kBudget, .budget_mib = 1}}) {
    load_hybrid(DraftPolicy::kMaxDraft, policy);
    const Outcome drafted = run(with_head(greedy(40), 3));
    expect_same(drafted, plain);
    EXPECT_GT(drafted.result.speculation.n_accepted, 3u);
  }
}

// What the head has seen of the prompt, in one chunk or several, and of the turn before.
TEST_P(HybridSpeculationTest, ASecondTurnIsTheSameToo) {
  const auto two_turns = [&](const GenerateSettings& settings) {
    Result<Session> session = engine_->new_session();
    EXPECT_TRUE(session);
    std::vector<TokenId> tokens = repetitive_prompt();
    std::vector<TokenId> said;
    for (int turn = 0; turn < 2; ++turn) {
      const Result<GenerateResult> result = generate(*session, tokens, settings, {});
      EXPECT_TRUE(result);
      tokens.insert(tokens.end(), result->tokens.begin(), result->tokens.end());
      said.insert(said.end(), result->tokens.begin(), result->tokens.end());
      tokens.push_back({65});
      EXPECT_TRUE(turn == 0 || result->n_reused > repetitive_prompt().size());
    }
    return said;
  };
  EXPECT_EQ(two_turns(with_head(greedy(30), 4)), two_turns(greedy(30)));
}

TEST_P(HybridSpeculationTest, AModelWithoutTheHeadIsRefused) {
  const std::filesystem::path path = folder_.file("headless.gguf");
  ASSERT_TRUE(testing::write_tiny_hybrid(path, {}));
  EngineSettings settings;
  settings.model = path;
  settings.backend = GetParam();
  settings.with_mtp = true;
  const Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("no head that predicts further tokens"), std::string::npos)
      << engine.error().message;
}

INSTANTIATE_TEST_SUITE_P(, HybridSpeculationTest, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

TEST(SpeculationStats, GainIsTokensPerTimeBesideSingleCalls) {
  const SpeculationStats stats{.n_drafted = 8,
                               .n_accepted = 6,
                               .n_calls = 2,
                               .seconds = 8.0,
                               .n_single_calls = 4,
                               .single_seconds = 4.0};
  EXPECT_DOUBLE_EQ(stats.gain(), 1.5);  // 12 tokens in the time of 8 calls
  EXPECT_DOUBLE_EQ(SpeculationStats{}.gain(), 1.0);
}

}  // namespace
}  // namespace godwit::engine
