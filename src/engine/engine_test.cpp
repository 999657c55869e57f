// Engine and Session on tiny synthetic models: the same tokens give the same bits however they are
// cut into calls, kept or computed again; what is wrong is an error that says so.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "engine/generate.h"
#include "engine/session.h"
#include "quant/formats.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::engine {
namespace {

constexpr uint64_t kVocab = testing::kTinyVocab;

std::filesystem::path write_tiny(const testing::TemporaryFolder& folder, TensorType type) {
  const std::filesystem::path path = folder.file("tiny.gguf");
  const Status written = testing::write_tiny_llama(path, {.type = type});
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

std::unique_ptr<Engine> load(const std::filesystem::path& path, EngineSettings settings) {
  settings.model = path;
  if (settings.n_threads == 0) settings.n_threads = 2;
  Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

EngineSettings with_chunk(size_t tokens) {
  EngineSettings settings;
  settings.chunk_tokens = tokens;
  return settings;
}

EngineSettings with_context(uint64_t positions) {
  EngineSettings settings;
  settings.n_context = positions;
  return settings;
}

std::vector<TokenId> some_tokens(size_t n) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back({static_cast<int32_t>(random_bits(9, i) % 256)});
  return ids;
}

std::vector<float> logits_of(Session& session) {
  const std::span<const float> logits = session.logits();
  return {logits.begin(), logits.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class EngineOfType : public ::testing::TestWithParam<TensorType> {
 protected:
  testing::TemporaryFolder folder_;
};

TEST_P(EngineOfType, EightBitsOfActivationsMoveQuantisedLogitsAlikeForEveryGrouping) {
  const std::filesystem::path path = write_tiny(folder_, GetParam());
  const std::vector<TokenId> tokens = some_tokens(60);
  const auto logits_with = [&](backend::ActivationBits bits, size_t chunk) {
    EngineSettings settings = with_chunk(chunk);
    settings.activation_bits = bits;
    const auto engine = load(path, settings);
    Result<Session> session = engine->new_session();
    EXPECT_TRUE(session && session->set_prompt(tokens, {}));
    return logits_of(*session);
  };
  const std::vector<float> eight = logits_with(backend::ActivationBits::kEight, 512);
  EXPECT_TRUE(same_bits(logits_with(backend::ActivationBits::kEight, 7), eight));
  const std::vector<float> sixteen = logits_with(backend::ActivationBits::kSixteen, 512);
  const bool is_float = GetParam() == TensorType::kF32 || GetParam() == TensorType::kF16 ||
                        GetParam() == TensorType::kBF16;
  EXPECT_EQ(same_bits(eight, sixteen), is_float);
  double most = 0;
  for (size_t i = 0; i < eight.size(); ++i) {
    most = std::max(most, static_cast<double>(std::fabs(eight[i] - sixteen[i])));
  }
  EXPECT_LT(most, 0.2) << "logits of about one in size";
}

TEST_P(EngineOfType, PackedAtUseGivesTheSameBitsAndPlansLessMemory) {
  const std::filesystem::path path = write_tiny(folder_, GetParam());
  const std::vector<TokenId> tokens = some_tokens(60);
  const auto at_load = load(path, with_chunk(40));
  for (const size_t n_threads : {size_t{1}, size_t{3}}) {
    EngineSettings settings = with_chunk(40);
    settings.repack = backend::Repack::kAtUse;
    settings.n_threads = n_threads;
    const auto at_use = load(path, settings);
    EXPECT_LT(at_use->plan().need.weight_bytes, at_load->plan().need.weight_bytes / 2);
    EXPECT_GT(at_use->plan().need.mapped_bytes, at_use->plan().need.weight_bytes);
    EXPECT_EQ(at_load->plan().need.mapped_bytes, 0u);
    Result<Session> expected = at_load->new_session();
    Result<Session> session = at_use->new_session();
    ASSERT_TRUE(expected && expected->set_prompt(tokens, {}));
    ASSERT_TRUE(session && session->set_prompt(tokens, {}));
    EXPECT_TRUE(same_bits(logits_of(*session), logits_of(*expected)));
    ASSERT_TRUE(expected->append(TokenId{7}) && session->append(TokenId{7}));
    EXPECT_TRUE(same_bits(logits_of(*session), logits_of(*expected)));
  }
}

TEST_P(EngineOfType, GivesTheSameBitsForEveryGroupingIntoCalls) {
  const std::filesystem::path path = write_tiny(folder_, GetParam());
  const std::vector<TokenId> tokens = some_tokens(300);
  std::vector<float> expected;
  for (const size_t chunk : {size_t{512}, size_t{64}, size_t{7}, size_t{1}}) {
    const auto engine = load(path, with_chunk(chunk));
    Result<Session> session = engine->new_session();
    ASSERT_TRUE(session);
    ASSERT_TRUE(session->set_prompt(tokens, {}));
    if (expected.empty()) expected = logits_of(*session);
    EXPECT_TRUE(same_bits(logits_of(*session), expected)) << "chunks of " << chunk;
  }
  for (const size_t n_threads : {size_t{1}, size_t{3}, size_t{8}}) {
    EngineSettings settings = with_chunk(100);
    settings.n_threads = n_threads;
    const auto engine = load(path, settings);
    Result<Session> session = engine->new_session();
    ASSERT_TRUE(session);
    ASSERT_TRUE(session->set_prompt(tokens, {}));
    EXPECT_TRUE(same_bits(logits_of(*session), expected)) << n_threads << " threads";
  }
  // Partly as a prompt, partly appended, as generation does.
  const auto engine = load(path, {});
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->set_prompt(std::span(tokens).first(250), {}));
  for (size_t i = 250; i < tokens.size(); ++i) ASSERT_TRUE(session->append(tokens[i]));
  EXPECT_TRUE(same_bits(logits_of(*session), expected)) << "appended";
}

std::vector<TensorType> all_types() {
  std::vector<TensorType> types;
  for (const quant::Format& format : quant::formats()) types.push_back(format.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(, EngineOfType, ::testing::ValuesIn(all_types()), [](const auto& test) {
  return std::string(tensor_type_name(test.param));
});

class EngineTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = write_tiny(folder_, TensorType::kQ8_0);
};

TEST_F(EngineTest, KeepsACommonPrefixWithoutChangingABit) {
  const auto engine = load(path_, {});
  const std::vector<TokenId> first = some_tokens(100);
  std::vector<TokenId> second(first.begin(), first.begin() + 60);
  for (int i = 0; i < 30; ++i) second.push_back({i});

  Result<Session> cold = engine->new_session();
  ASSERT_TRUE(cold && cold->set_prompt(second, {}));
  Result<Session> warm = engine->new_session();
  ASSERT_TRUE(warm && warm->set_prompt(first, {}));
  ASSERT_TRUE(warm->set_prompt(second, {}));
  EXPECT_EQ(warm->n_reused(), 60u);
  EXPECT_TRUE(same_bits(logits_of(*warm), logits_of(*cold)));
  // The same prompt again: only the last token runs.
  ASSERT_TRUE(warm->set_prompt(second, {}));
  EXPECT_EQ(warm->n_reused(), second.size() - 1);
  EXPECT_TRUE(same_bits(logits_of(*warm), logits_of(*cold)));
}

TEST_F(EngineTest, AStoppedPromptKeepsItsFinishedChunks) {
  const auto engine = load(path_, with_chunk(32));
  const std::vector<TokenId> tokens = some_tokens(100);
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  const Status stopped = session->set_prompt(tokens, [](size_t done, size_t) { return done < 64; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "stopped after 64 of 100 prompt tokens");
  ASSERT_TRUE(session->set_prompt(tokens, {}));
  EXPECT_EQ(session->n_reused(), 64u);
}

TEST_F(EngineTest, RefusesPromptsThatCannotBe) {
  const auto engine = load(path_, with_context(64));
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  EXPECT_EQ(session->set_prompt({}, {}).error().message, "the prompt is empty");
  EXPECT_EQ(session->set_prompt(some_tokens(65), {}).error().message,
            "the prompt has 65 tokens, the context holds 64 (-c)");
  const TokenId foreign{static_cast<int32_t>(kVocab)};
  EXPECT_EQ(session->set_prompt({&foreign, 1}, {}).error().message,
            "token 300 is outside the vocabulary of 300");
  ASSERT_TRUE(session->set_prompt(some_tokens(64), {}));
  EXPECT_EQ(session->append({1}).error().message, "the context of 64 positions is full");
}

TEST_F(EngineTest, HandsOutTheLogitsOfEveryPositionFromOneOn) {
  const std::vector<TokenId> tokens = some_tokens(50);
  std::vector<std::vector<float>> expected;
  {
    const auto engine = load(path_, {});
    Result<Session> session = engine->new_session();
    ASSERT_TRUE(session);
    ASSERT_TRUE(session->set_prompt(std::span(tokens).first(1), {}));
    expected.push_back(logits_of(*session));
    for (size_t i = 1; i < tokens.size(); ++i) {
      ASSERT_TRUE(session->append(tokens[i]));
      expected.push_back(logits_of(*session));
    }
  }
  for (const size_t chunk : {1u, 16u, 512u}) {
    for (const size_t rows : {1u, 5u, 999u}) {
      EngineSettings settings = with_chunk(chunk);
      settings.max_logit_rows = rows;
      const auto engine = load(path_, settings);
      Result<Session> session = engine->new_session();
      ASSERT_TRUE(session);
      size_t next = 20;
      const Status ran = session->for_each_logits(
          tokens, 20, [&](size_t position, std::span<const float> logits) -> Status {
            EXPECT_EQ(position, next);
            EXPECT_LE(logits.size(), rows * kVocab);
            for (; !logits.empty(); logits = logits.subspan(kVocab), ++next) {
              const std::vector<float> row(logits.begin(), logits.begin() + kVocab);
              EXPECT_TRUE(same_bits(row, expected.at(next))) << next;
            }
            return {};
          });
      ASSERT_TRUE(ran) << ran.error().message;
      EXPECT_EQ(next, tokens.size());
      // The timeline is the prompt's: it can be gone on with.
      EXPECT_EQ(session->tokens().size(), tokens.size());
    }
  }
}

TEST_F(EngineTest, AnErrorOfTheSinkEndsTheLogits) {
  const auto engine = load(path_, with_chunk(8));
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  size_t calls = 0;
  const Status ran =
      session->for_each_logits(some_tokens(30), 0, [&](size_t, std::span<const float>) -> Status {
        return ++calls == 3 ? Status(fail("enough")) : Status();
      });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().message, "enough");
  EXPECT_EQ(calls, 3u);
}

TEST_F(EngineTest, LogitRowsAreAtMostAChunk) {
  EngineSettings settings = with_chunk(8);
  settings.max_logit_rows = 100;
  EXPECT_EQ(load(path_, settings)->settings().max_logit_rows, 8u);
}

GenerateSettings greedy(int64_t max_tokens) {
  GenerateSettings settings;
  settings.sampler.temperature = 0.0f;
  settings.max_tokens = max_tokens;
  settings.ignore_end = true;
  return settings;
}

TEST_F(EngineTest, GenerationEndsAtItsLimitOrWhenTheContextIsFull) {
  const auto engine = load(path_, with_context(64));
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  const std::vector<TokenId> prompt = some_tokens(40);
  const Result<GenerateResult> limited = generate(*session, prompt, greedy(10), {});
  ASSERT_TRUE(limited) << limited.error().message;
  EXPECT_EQ(limited->tokens.size(), 10u);
  EXPECT_EQ(limited->reason, StopReason::kMaxTokens);
  EXPECT_EQ(limited->n_decode_steps, 9u);  // the last token needs no logits after it

  const Result<GenerateResult> full = generate(*session, prompt, greedy(-1), {});
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->reason, StopReason::kContextFull);
  EXPECT_EQ(full->tokens.size(), 25u);  // 24 fill the context, one more is known
  EXPECT_TRUE(std::equal(limited->tokens.begin(), limited->tokens.end(), full->tokens.begin()));
}

TEST_F(EngineTest, GenerationRepeatsForASeedAndDiffersForAnother) {
  for (const char* backend : {"cpu", "reference"}) {
    EngineSettings own;
    own.backend = backend;
    const auto engine = load(path_, own);
    Result<Session> a = engine->new_session();
    Result<Session> b = engine->new_session();
    ASSERT_TRUE(a && b);
    GenerateSettings settings = greedy(20);
    settings.sampler.temperature = 0.9f;
    settings.sampler.seed = 4;
    const Result<GenerateResult> first = generate(*a, some_tokens(20), settings, {});
    const Result<GenerateResult> second = generate(*b, some_tokens(20), settings, {});
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->tokens, second->tokens) << backend;
    settings.sampler.seed = 5;
    const Result<GenerateResult> other = generate(*b, some_tokens(20), settings, {});
    ASSERT_TRUE(other);
    EXPECT_NE(first->tokens, other->tokens) << backend;
  }
}

TEST_F(EngineTest, ReportsLogprobsOfTheUntouchedDistribution) {
  const auto engine = load(path_, {});
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  GenerateSettings settings = greedy(3);
  settings.n_logprobs = 4;
  const Result<GenerateResult> result = generate(*session, some_tokens(10), settings, {});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->reports.size(), 3u);
  for (const TokenReport& report : result->reports) {
    ASSERT_EQ(report.top.size(), 4u);
    EXPECT_EQ(report.top[0].token, report.token);  // greedy
    EXPECT_EQ(report.top[0].logprob, report.logprob);
    EXPECT_GE(report.top[0].logprob, report.top[1].logprob);
    EXPECT_LT(report.logprob, 0.0f);
  }
}

TEST_F(EngineTest, StopsOnAStringAcrossTokensAndHidesIt) {
  const auto engine = load(path_, {});
  Result<Session> session = engine->new_session();
  ASSERT_TRUE(session);
  GenerateSettings settings = greedy(40);
  const Result<GenerateResult> whole = generate(*session, some_tokens(12), settings, {});
  ASSERT_TRUE(whole);
  ASSERT_GE(whole->text.size(), 8u);
  // Cut at a character boundary: the text is whatever the random model says.
  size_t begin = 3;
  while ((static_cast<unsigned char>(whole->text[begin]) & 0xc0) == 0x80) ++begin;
  size_t end = begin + 3;
  while ((static_cast<unsigned char>(whole->text[end]) & 0xc0) == 0x80) ++end;
  settings.stops = {whole->text.substr(begin, end - begin)};
  const Result<GenerateResult> stopped = generate(*session, some_tokens(12), settings, {});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->reason, StopReason::kStopString);
  EXPECT_EQ(stopped->text, whole->text.substr(0, whole->text.find(settings.stops[0])));
}

TEST_F(EngineTest, RefusesAContextBeyondWhatItAddresses) {
  EngineSettings settings = with_context((uint64_t{1} << 24) + 1);
  settings.model = path_;
  const auto refused = Engine::load(settings, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("more than Godwit addresses"), std::string::npos);
}

TEST_F(EngineTest, AFileWithoutAChatTemplateGetsChatml) {
  const auto engine = load(path_, {});
  EXPECT_EQ(engine->chat_template_origin(), Engine::TemplateOrigin::kDefault);
  const auto prompt = engine->render_chat(R"([{"role": "user", "content": "Hi"}])", "");
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_EQ(prompt->text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(EngineTest, TemplateVariablesReachTheTemplate) {
  EngineSettings settings;
  settings.chat_template = "{{ mood }}{{ messages|length }}";
  settings.chat_template_kwargs = R"({"mood": "calm"})";
  const auto engine = load(path_, settings);
  EXPECT_EQ(engine->chat_template_origin(), Engine::TemplateOrigin::kSettings);
  const auto prompt = engine->render_chat("[]", "");
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_EQ(prompt->text, "calm0");
}

TEST_F(EngineTest, ABrokenTemplateFailsOnlyWhenItIsUsed) {
  EngineSettings settings;
  settings.chat_template = "{% if %}";
  const auto engine = load(path_, settings);
  const auto found = engine->chat_template();
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().message.starts_with("chat template: line 1")) << found.error().message;
}

}  // namespace
}  // namespace godwit::engine
