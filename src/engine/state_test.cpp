// State of sessions: whatever was kept, saved, brought back or found in a tree, the bits that
// follow are those of a session that did nothing but run.
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "engine/prefix_tree.h"
#include "engine/session.h"
#include "engine/state_file.h"
#include "testing/models/tiny_hybrid.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::engine {
namespace {

using Tokens = std::vector<TokenId>;
using Logits = std::vector<float>;

Tokens some_tokens(size_t n, uint64_t seed) {
  Tokens ids;
  for (size_t i = 0; i < n; ++i) ids.push_back({static_cast<int32_t>(random_bits(seed, i) % 256)});
  return ids;
}

Tokens joined(std::span<const TokenId> first, std::span<const TokenId> second) {
  Tokens all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

Logits logits_of(const Session& session) {
  return {session.logits().begin(), session.logits().end()};
}

bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class StateTest : public ::testing::Test {
 protected:
  StateTest() { EXPECT_TRUE(testing::write_tiny_llama(path_, {})); }

  [[nodiscard]] std::unique_ptr<Engine> load(EngineSettings settings) const {
    settings.model = path_;
    if (settings.n_threads == 0) settings.n_threads = 2;
    Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
    EXPECT_TRUE(engine) << engine.error().message;
    return *std::move(engine);
  }
  static Session new_session(Engine& engine) {
    Result<Session> session = engine.new_session();
    EXPECT_TRUE(session) << session.error().message;
    return *std::move(session);
  }
  static Logits run(Session& session, const Tokens& tokens) {
    const Status ran = session.set_prompt(tokens, {});
    EXPECT_TRUE(ran) << ran.error().message;
    return logits_of(session);
  }
  // Of a session that has nothing but these tokens.
  static Logits cold(Engine& engine, const Tokens& tokens) {
    Session session = new_session(engine);
    return run(session, tokens);
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.file("tiny.gguf");
};

struct Variant {
  const char* backend;
  TensorType k_type;
  TensorType v_type;
  size_t n_threads;
};

constexpr Variant kVariants[] = {{"cpu", TensorType::kF16, TensorType::kF16, 1},
                                 {"cpu", TensorType::kF16, TensorType::kF16, 2},
                                 {"cpu", TensorType::kF16, TensorType::kF16, 3},
                                 {"cpu", TensorType::kF32, TensorType::kF32, 2},
                                 {"cpu", TensorType::kBF16, TensorType::kF32, 2},
                                 {"cpu", TensorType::kQ8_0, TensorType::kQ4_0, 2},
                                 {"cpu", TensorType::kQ4_0, TensorType::kF16, 3},
                                 {"reference", TensorType::kF16, TensorType::kF16, 2}};

EngineSettings settings_of(const Variant& variant) {
  EngineSettings settings;
  settings.backend = variant.backend;
  settings.k_type = variant.k_type;
  settings.v_type = variant.v_type;
  settings.n_threads = variant.n_threads;
  settings.n_context = 128;
  settings.chunk_tokens = 16;
  return settings;
}

TEST_F(StateTest, ARestoredSnapshotContinuesToTheBitFromAnyPosition) {
  for (const Variant& variant : kVariants) {
    const auto engine = load(settings_of(variant));
    const Tokens tokens = some_tokens(50, 1);
    const Logits expected = cold(*engine, tokens);
    for (const size_t at : {1u, 15u, 16u, 17u, 31u, 49u}) {
      Session first = new_session(*engine);
      run(first, Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at)));
      const Snapshot snapshot = first.snapshot();
      Session second = new_session(*engine);
      run(second, some_tokens(60, 2));
      second.restore(snapshot);
      EXPECT_EQ(second.tokens().size(), at);
      for (size_t i = at; i < tokens.size(); ++i) ASSERT_TRUE(second.append(tokens[i]));
      EXPECT_TRUE(same_bits(logits_of(second), expected)) << variant.backend << " at " << at;
    }
  }
}

TEST_F(StateTest, AFileContinuesToTheBitWhateverTheThreads) {
  const std::filesystem::path file = folder_.file("saved.state");
  for (const Variant& variant : kVariants) {
    const auto engine = load(settings_of(variant));
    const Tokens tokens = some_tokens(50, 1);
    const Logits expected = cold(*engine, tokens);
    Session first = new_session(*engine);
    run(first, Tokens(tokens.begin(), tokens.begin() + 37));
    const Status saved = save_session(first, file, "a note\nof two lines");
    ASSERT_TRUE(saved) << saved.error().message;
    for (const size_t n_threads : {1u, 2u, 3u}) {
      Variant other = variant;
      other.n_threads = n_threads;
      const auto again = load(settings_of(other));
      Session second = new_session(*again);
      const Result<std::string> note = restore_session(second, file);
      ASSERT_TRUE(note) << note.error().message;
      EXPECT_EQ(*note, "a note\nof two lines");
      EXPECT_TRUE(same_bits(run(second, tokens), expected)) << variant.backend;
      EXPECT_EQ(second.n_reused(), 37u);
    }
  }
}

// Models whose states can be returned to everywhere, and nowhere but where they were kept.
struct ModelCase {
  const char* name;
  bool recurrent;
  const char* backend;
};

class StateOfModelTest : public StateTest, public ::testing::WithParamInterface<ModelCase> {
 protected:
  StateOfModelTest() {
    if (GetParam().recurrent) {
      EXPECT_TRUE(testing::write_tiny_hybrid(path_, {.n_positions = 4096}));
    }
  }
  [[nodiscard]] EngineSettings settings() const {
    EngineSettings settings;
    settings.backend = GetParam().backend;
    settings.n_context = 160;
    settings.chunk_tokens = 16;
    return settings;
  }
};

TEST_P(StateOfModelTest, ASessionSavedAnywhereGoesOnAsIfItHadNotBeen) {
  const auto engine = load(settings());
  const Tokens tokens = some_tokens(140, 1);
  GenerateSettings wanted;
  wanted.sampler.seed = 7;
  wanted.max_tokens = 10;
  wanted.ignore_end = true;
  // Ends of chunks of the prompt and of the recurrence, beside them, and far from both.
  for (const size_t at : {1u, 15u, 16u, 17u, 37u, 63u, 64u, 65u, 100u, 127u, 128u, 129u}) {
    SCOPED_TRACE(at);
    const Tokens prompt(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at));
    Session never_saved = new_session(*engine);
    run(never_saved, prompt);
    const Status saved = save_session(never_saved, folder_.file("saved"), "");
    ASSERT_TRUE(saved) << saved.error().message;
    Session restored = new_session(*engine);
    run(restored, some_tokens(33, 2));
    ASSERT_TRUE(restore_session(restored, folder_.file("saved")));
    ASSERT_EQ(restored.tokens().size(), at);
    // Not a token is computed anew.
    const Tokens next = joined(prompt, some_tokens(5, 9));
    const auto expected = generate(never_saved, next, wanted, {});
    const auto found = generate(restored, next, wanted, {});
    ASSERT_TRUE(expected && found);
    EXPECT_EQ(found->n_reused, at);
    EXPECT_EQ(found->tokens, expected->tokens);
    EXPECT_TRUE(same_bits(logits_of(restored), logits_of(never_saved)));
    EXPECT_TRUE(same_bits(logits_of(restored), [&] {
      Session cold_session = new_session(*engine);
      EXPECT_TRUE(generate(cold_session, next, wanted, {}));
      return logits_of(cold_session);
    }()));
  }
}

TEST_P(StateOfModelTest, ASessionSavedInTheMiddleOfAnAnswerGoesOn) {
  const auto engine = load(settings());
  const Tokens prompt = some_tokens(50, 3);
  for (const size_t n_said : {1u, 7u, 14u, 15u}) {
    Session never_saved = new_session(*engine);
    run(never_saved, prompt);
    for (size_t i = 0; i < n_said; ++i) {
      ASSERT_TRUE(never_saved.append({static_cast<int32_t>(i * 3)}));
    }
    ASSERT_TRUE(save_session(never_saved, folder_.file("saved"), ""));
    Session restored = new_session(*engine);
    ASSERT_TRUE(restore_session(restored, folder_.file("saved")));
    for (size_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(never_saved.append({static_cast<int32_t>(i * 5)}));
      ASSERT_TRUE(restored.append({static_cast<int32_t>(i * 5)}));
      ASSERT_TRUE(same_bits(logits_of(restored), logits_of(never_saved))) << n_said << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, StateOfModelTest,
                         ::testing::Values(ModelCase{"attention", false, "cpu"},
                                           ModelCase{"attention_reference", false, "reference"},
                                           ModelCase{"recurrent", true, "cpu"},
                                           ModelCase{"recurrent_reference", true, "reference"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(StateTest, AStateWithoutTheHeadsKvIsRefusedWhereTheHeadIsLoaded) {
  ASSERT_TRUE(testing::write_tiny_hybrid(path_, {.head = testing::TinyHead::kPredictsFurther}));
  EngineSettings settings = settings_of(kVariants[1]);
  const auto without = load(settings);
  settings.with_mtp = true;
  const auto with = load(settings);
  Session saved = new_session(*without);
  run(saved, some_tokens(20, 1));
  ASSERT_TRUE(save_session(saved, folder_.file("saved"), ""));
  Session other = new_session(*with);
  const Tokens before = some_tokens(9, 2);
  run(other, before);
  const auto restored = restore_session(other, folder_.file("saved"));
  ASSERT_FALSE(restored);
  EXPECT_NE(restored.error().message.find("bytes per position"), std::string::npos)
      << restored.error().message;
  EXPECT_EQ(Tokens(other.tokens().begin(), other.tokens().end()), before);
}

// A long document with three questions about it, asked in turn and once more.
class LongStateTest : public StateOfModelTest {};

TEST_P(LongStateTest, ThreeWaysFromNearTwoThousandPositionsAndBackAreColdRuns) {
  EngineSettings wanted = settings();
  wanted.n_context = 2100;
  wanted.chunk_tokens = 128;
  const auto engine = load(wanted);
  constexpr size_t kStem = 15 * 128;
  const Tokens stem = some_tokens(kStem, 5);
  std::vector<Tokens> ways;
  std::vector<Logits> expected;
  for (uint64_t way = 0; way < 3; ++way) {
    ways.push_back(joined(stem, some_tokens(40 + 50 * way, 10 + way)));
    expected.push_back(cold(*engine, ways.back()));
  }
  Session session = new_session(*engine);
  run(session, stem);
  const Snapshot snapshot = session.snapshot();
  PrefixTree tree(session.tree_settings(256 << 20));
  Session with_tree = new_session(*engine);
  with_tree.use_tree(&tree);
  for (int round = 0; round < 2; ++round) {
    for (size_t way = 0; way < ways.size(); ++way) {
      session.restore(snapshot);
      EXPECT_TRUE(same_bits(run(session, ways[way]), expected[way])) << way;
      EXPECT_EQ(session.n_reused(), kStem);
      EXPECT_TRUE(same_bits(run(with_tree, ways[way]), expected[way])) << way;
      if (round > 0 || way > 0) {
        EXPECT_GE(with_tree.n_reused(), kStem) << way;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LongStateTest,
                         ::testing::Values(ModelCase{"attention", false, "cpu"},
                                           ModelCase{"recurrent", true, "cpu"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(StateTest, GenerationGoesOnFromAFileAsIfNothingHadHappened) {
  const auto engine = load(settings_of(kVariants[1]));
  GenerateSettings settings;
  settings.sampler.seed = 7;
  settings.max_tokens = 12;
  settings.ignore_end = true;
  Session never_saved = new_session(*engine);
  Session saved = new_session(*engine);
  const Tokens prompt = some_tokens(20, 3);
  const auto first = generate(never_saved, prompt, settings, {});
  ASSERT_TRUE(first && generate(saved, prompt, settings, {}));
  ASSERT_TRUE(save_session(saved, folder_.file("saved"), ""));
  Session restored = new_session(*engine);
  ASSERT_TRUE(restore_session(restored, folder_.file("saved")));

  const Tokens next = joined(joined(prompt, first->tokens), some_tokens(9, 4));
  const auto expected = generate(never_saved, next, settings, {});
  const auto found = generate(restored, next, settings, {});
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->tokens, expected->tokens);
  EXPECT_EQ(found->n_reused, expected->n_reused);
}

TEST_F(StateTest, ThreeWaysFromASnapshotAndBackAreColdRuns) {
  const auto engine = load(settings_of(kVariants[1]));
  const Tokens stem = some_tokens(40, 5);
  Session session = new_session(*engine);
  run(session, stem);
  const Snapshot snapshot = session.snapshot();
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint64_t way = 0; way < 3; ++way) {
      const Tokens tokens = joined(stem, some_tokens(10 + way, 10 + way));
      session.restore(snapshot);
      EXPECT_TRUE(same_bits(run(session, tokens), cold(*engine, tokens))) << way;
      EXPECT_EQ(session.n_reused(), stem.size());
    }
  }
}

TEST_F(StateTest, ATreeBringsBackWhatATimelineGaveUp) {
  const auto engine = load(settings_of(kVariants[1]));
  const Tokens stem = some_tokens(40, 5);
  Session session = new_session(*engine);
  PrefixTree tree(session.tree_settings(64 << 20));
  session.use_tree(&tree);
  Tokens ways[3];
  for (uint64_t way = 0; way < 3; ++way) {
    ways[way] = joined(std::span(stem).first(20 + 7 * way), some_tokens(30, 10 + way));
    EXPECT_TRUE(same_bits(run(session, ways[way]), cold(*engine, ways[way]))) << way;
  }
  EXPECT_EQ(session.n_from_tree(), 0u);
  for (uint64_t way = 0; way < 3; ++way) {
    EXPECT_TRUE(same_bits(run(session, ways[way]), cold(*engine, ways[way]))) << way;
    // All but the last token, which always runs.
    EXPECT_EQ(session.n_reused(), ways[way].size() - 1);
    EXPECT_GT(session.n_from_tree(), 0u);
  }
  session.reset();
  EXPECT_TRUE(same_bits(run(session, stem), cold(*engine, stem)));
  EXPECT_EQ(session.n_from_tree(), 34u);  // what the third way shares with the stem
}

TEST_F(StateTest, ASmallTreeChangesNothingButTheWork) {
  const auto engine = load(settings_of(kVariants[1]));
  Session session = new_session(*engine);
  PrefixTree tree(session.tree_settings(40 << 10));
  session.use_tree(&tree);
  RandomStream random(3);
  Tokens tokens = some_tokens(30, 1);
  size_t n_from_tree = 0;
  for (int i = 0; i < 60; ++i) {
    if (random.below(4) == 0) session.reset();
    tokens.resize(1 + random.below(tokens.size()));
    tokens = joined(tokens, some_tokens(1 + random.below(30), random.below(3)));
    if (tokens.size() > 100) tokens.resize(100);
    ASSERT_TRUE(same_bits(run(session, tokens), cold(*engine, tokens))) << i;
    ASSERT_LE(tree.bytes(), 40u << 10);
    n_from_tree += session.n_from_tree();
  }
  EXPECT_GT(n_from_tree, 0u);
}

}  // namespace
}  // namespace godwit::engine
