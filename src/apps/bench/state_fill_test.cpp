#include "apps/bench/state_fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "apps/bench/decode_timer.h"
#include "apps/bench/prefill_timer.h"
#include "apps/bench/test_timer.h"
#include "engine/state_file.h"
#include "testing/models/tiny_hybrid.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

using Kind = StateFill::Kind;

enum class Model : uint8_t { kAttention, kHybrid };

class StateFillTest : public ::testing::Test {
 protected:
  void load(Model model) {
    session_.reset();
    engine_.reset();
    const std::filesystem::path path = folder_.path() / "model.gguf";
    if (model == Model::kHybrid) {
      ASSERT_TRUE(testing::write_tiny_hybrid(path, {.n_positions = 1024}));
    } else {
      ASSERT_TRUE(testing::write_tiny_llama(path, {}));
    }
    engine::EngineSettings settings;
    settings.model = path;
    settings.n_threads = 2;
    settings.n_context = 1024;
    auto engine = engine::Engine::load(settings, {});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
    auto session = engine_->new_session();
    ASSERT_TRUE(session) << session.error().message;
    session_.emplace(std::move(*session));
  }

  StateFiller filler(const StateFill& fill) {
    auto made = StateFiller::create(*session_, fill, 1);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }

  std::vector<std::byte> exported(uint64_t begin, uint64_t end) const {
    std::vector<std::byte> bytes((end - begin) * session_->state_shape().position_bytes);
    session_->export_state({begin, end}, {.positions = bytes, .fixed = {}});
    return bytes;
  }

  std::vector<float> logits_after(TokenId token) {
    EXPECT_TRUE(session_->append(token));
    return {session_->logits().begin(), session_->logits().end()};
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<engine::Session> session_;
};

bool sane(const std::vector<float>& logits) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) return false;
  }
  return !logits.empty();
}

TEST(StateFill, IsANameOrAFile) {
  EXPECT_EQ(parse_state_fill("random").value(), (StateFill{.kind = Kind::kRandom}));
  EXPECT_EQ(parse_state_fill("zeros").value(), (StateFill{.kind = Kind::kZeros}));
  EXPECT_FALSE(parse_state_fill(""));
  EXPECT_FALSE(parse_state_fill("/"));
  const auto missing = parse_state_fill("/no/such.state");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'/no/such.state'"), std::string::npos);
}

TEST_F(StateFillTest, PositionsHoldThePatternOnWhateverWayTheyWereReached) {
  load(Model::kAttention);
  StateFiller fill = filler({.kind = Kind::kRandom});
  ASSERT_TRUE(fill.fill(*session_, 900));
  EXPECT_EQ(session_->tokens().size(), 900u);
  const std::vector<std::byte> at_once = exported(0, 900);
  EXPECT_NE(std::vector<std::byte>(at_once.size()), at_once);

  // Back, a step that goes over position 40, and on again.
  ASSERT_TRUE(fill.fill(*session_, 40));
  EXPECT_TRUE(sane(logits_after({3})));
  EXPECT_NE(exported(0, 900), at_once);
  ASSERT_TRUE(fill.fill(*session_, 900));
  EXPECT_EQ(exported(0, 900), at_once);
}

TEST_F(StateFillTest, ZerosAreZeros) {
  load(Model::kAttention);
  StateFiller fill = filler({.kind = Kind::kZeros});
  ASSERT_TRUE(fill.fill(*session_, 100));
  const std::vector<std::byte> bytes = exported(0, 100);
  EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size()));
  EXPECT_TRUE(sane(logits_after({3})));
}

TEST_F(StateFillTest, HybridsGoOnFromAnyDepth) {
  load(Model::kHybrid);
  for (const Kind kind : {Kind::kRandom, Kind::kZeros}) {
    StateFiller fill = filler({.kind = kind});
    for (const size_t depth : std::initializer_list<size_t>{1, 15, 16, 17, 600, 33, 0}) {
      SCOPED_TRACE(depth);
      ASSERT_TRUE(fill.fill(*session_, depth));
      EXPECT_EQ(session_->tokens().size(), depth);
      const std::vector<float> logits = logits_after({3});
      EXPECT_TRUE(sane(logits));
      ASSERT_TRUE(fill.fill(*session_, depth));
      EXPECT_EQ(logits_after({3}), logits);
    }
  }
}

TEST_F(StateFillTest, AFileIsWhatWasSaved) {
  load(Model::kAttention);
  const std::vector<TokenId> prompt = bench_tokens(*engine_, 50);
  ASSERT_TRUE(session_->set_prompt(prompt, {}));
  const std::string path = folder_.path() / "x.state";
  ASSERT_TRUE(engine::save_session(*session_, path, ""));
  const std::vector<float> expected = logits_after({3});

  StateFiller fill = filler({.kind = Kind::kFile, .path = path});
  EXPECT_EQ(fill.n_file_positions(), 50u);
  ASSERT_TRUE(fill.fill(*session_, 20));
  EXPECT_EQ(session_->tokens().size(), 20u);
  ASSERT_TRUE(fill.fill(*session_, 50));
  EXPECT_EQ(logits_after({3}), expected);
  EXPECT_FALSE(fill.fill(*session_, 51));
}

TEST_F(StateFillTest, AFileOfAHybridIsGoodAtItsEndOnly) {
  load(Model::kHybrid);
  ASSERT_TRUE(session_->set_prompt(bench_tokens(*engine_, 50), {}));
  const std::string path = folder_.path() / "x.state";
  ASSERT_TRUE(engine::save_session(*session_, path, ""));
  StateFiller fill = filler({.kind = Kind::kFile, .path = path});
  EXPECT_TRUE(fill.fill(*session_, 50));
  EXPECT_FALSE(fill.fill(*session_, 49));
}

TEST_F(StateFillTest, RefusesMoreThanTheContext) {
  load(Model::kAttention);
  StateFiller fill = filler({});
  EXPECT_TRUE(fill.fill(*session_, 1023));
  EXPECT_FALSE(fill.fill(*session_, 1024));
}

TEST_F(StateFillTest, DecodeStepsAreTimedWhereTheyWereAskedFor) {
  for (const Model model : {Model::kAttention, Model::kHybrid}) {
    load(model);
    auto timer = DecodeTimer::create(
        *session_, {}, {.start_positions = {0, 700}, .n_tokens = 3, .n_repetitions = 2, .seed = 1});
    ASSERT_TRUE(timer) << timer.error().message;
    for (const size_t position : timer->start_positions()) {
      const auto row = timer->measure(position);
      ASSERT_TRUE(row) << row.error().message;
      EXPECT_EQ(row->row.test.n_depth, position);
      EXPECT_EQ(session_->tokens().size(), position + 3);
      ASSERT_EQ(row->repetitions.size(), 2u);
      EXPECT_EQ(row->repetitions[1].token_us.size(), 3u);
      EXPECT_GT(row->token_us(0.5), 0);
    }
  }
}

TEST_F(StateFillTest, PromptsAreTimedAfterTheDepthOnly) {
  for (const Model model : {Model::kAttention, Model::kHybrid}) {
    load(model);
    PrefillTimer timer(*session_, filler({}));
    const auto row = timer.measure({.n_prompt = 20, .n_gen = 0, .n_depth = 600}, 2);
    ASSERT_TRUE(row) << row.error().message;
    EXPECT_EQ(session_->tokens().size(), 620u);
    EXPECT_EQ(session_->n_reused(), 600u);
    EXPECT_EQ(row->row.samples_ns.size(), 2u);
    EXPECT_GT(row->multiply_adds_per_token, 0);
  }
}

}  // namespace
}  // namespace godwit::apps
