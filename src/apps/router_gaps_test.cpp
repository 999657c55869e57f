// The gap of a router, seen from outside: a model that uses one expert more gives the weight of the
// first expert that the other did not choose, and weights tell the differences of logits.
#include "apps/router_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/synth_model.h"
#include "base/random.h"
#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

constexpr size_t kUsed = 4;

class RouterGaps : public ::testing::Test {
 protected:
  // A layer of 16 experts, n_used of them used, the same weights for any number.
  std::unique_ptr<engine::Engine> load(uint32_t n_used) {
    SynthOptions options;
    options.shape = *find_shape("tiny");
    options.shape.arch = "qwen3moe";
    options.shape.n_layers = 1;
    options.shape.experts = {.count = 16, .used = n_used, .ffn = 256};
    options.matrix_type = TensorType::kF32;
    options.seed = 3;
    const std::filesystem::path path = folder_.file(fmt::format("used{}.gguf", n_used));
    const auto model = plan_synth_model(options);
    EXPECT_TRUE(model && write_synth_model(*model, path, {}));
    engine::EngineSettings settings;
    settings.model = path;
    settings.n_threads = 2;
    settings.n_context = 256;
    auto engine = engine::Engine::load(settings, {});
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    return *std::move(engine);
  }

  testing::TemporaryFolder folder_;
};

std::vector<TokenId> some_tokens(size_t n) {
  std::vector<TokenId> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back({static_cast<int32_t>(random_bits(5, i) % 256)});
  return ids;
}

TEST_F(RouterGaps, AreDifferencesOfLogits) {
  const std::vector<TokenId> tokens = some_tokens(20);
  const auto four = load(kUsed);
  const Result<std::vector<double>> gaps = router_gaps(*four, tokens, tokens.size());
  ASSERT_TRUE(gaps) << gaps.error().message;
  ASSERT_EQ(gaps->size(), tokens.size());

  const auto five = load(kUsed + 1);
  const auto context =
      five->backend().make_context({.n_positions = tokens.size(), .max_rows = tokens.size()});
  ASSERT_TRUE(context);
  std::vector<program::Row> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({.token = tokens[i], .position = {static_cast<int32_t>(i)}});
  }
  const std::vector<program::Step>& steps = five->program().main;
  ASSERT_TRUE(five->backend().run(*context, rows, {.begin = 0, .end = steps.size()}));
  const auto router = std::ranges::find_if(steps, [](const program::Step& step) {
    return std::holds_alternative<program::Route>(step.operation);
  });
  ASSERT_NE(router, steps.end());
  const program::Routing& routing = std::get<program::Route>(router->operation).out;
  const size_t width = routing.width();
  std::vector<float> chosen(tokens.size() * width);
  five->backend().read(*context, routing.buffer, chosen);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const float* const weights = &chosen[t * width + kUsed + 1];
    const double expected = std::log(static_cast<double>(weights[kUsed - 1] / weights[kUsed]));
    EXPECT_NEAR((*gaps)[t], expected, 1e-4) << t;
  }
}

TEST_F(RouterGaps, OfTheLastTokensAreTheLastOnes) {
  const std::vector<TokenId> tokens = some_tokens(150);  // more than one call
  const auto engine = load(kUsed);
  const Result<std::vector<double>> all = router_gaps(*engine, tokens, tokens.size());
  const Result<std::vector<double>> last = router_gaps(*engine, tokens, 3);
  ASSERT_TRUE(all && last);
  EXPECT_EQ(*last, std::vector<double>(all->end() - 3, all->end()));
}

TEST_F(RouterGaps, AreInfiniteWhereEveryExpertIsUsed) {
  const auto engine = load(16);
  const Result<std::vector<double>> gaps = router_gaps(*engine, some_tokens(3), 3);
  ASSERT_TRUE(gaps);
  for (const double gap : *gaps) EXPECT_TRUE(std::isinf(gap));
}

}  // namespace
}  // namespace godwit::apps
