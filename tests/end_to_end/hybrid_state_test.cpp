// The state of a model with recurrent layers: what is exported at some position and put back into
// another context goes on to the bit, and restarts begin from nothing.
#include <gtest/gtest.h>

#include <tuple>

#include "backend/registry.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "transformers_fixtures.h"

namespace godwit {
namespace {

// Enough for several chunks of the delta rule, and for experts with more rows than are computed at
// a time.
constexpr uint64_t kPositions = 160;

// Fixture and backend.
class HybridState : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    Result<gguf::File> file =
        gguf::File::open(testing::transformers_fixture(std::get<0>(GetParam()) + ".gguf"));
    ASSERT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
    Result<model::Model> model = model::build_model(*file_);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    auto backend = backend::make_backend(std::get<1>(GetParam()), {.n_threads = 2});
    ASSERT_TRUE(backend);
    backend_ = std::move(*backend);
    ASSERT_TRUE(backend_->load(model_.program, model_.weights, {}));
  }

  // All of `full`; of the oracle, which is slow and knows no chunks, its first two.
  std::vector<uint64_t> cases(std::vector<uint64_t> full) const {
    if (std::get<1>(GetParam()) == "reference") full.resize(2);
    return full;
  }

  backend::ContextId make_context() {
    const auto context = backend_->make_context({.n_positions = kPositions,
                                                 .k_type = TensorType::kF32,
                                                 .v_type = TensorType::kF32,
                                                 .max_rows = kPositions,
                                                 .max_logit_rows = kPositions,
                                                 .max_tentative_rows = 31});
    EXPECT_TRUE(context);
    return *context;
  }

  // Logits after tokens [begin, end) in one call of which all but the first may be taken back; from
  // `wrong_from` on other tokens than run() has.
  std::vector<float> try_rows(backend::ContextId context, uint64_t begin, uint64_t end,
                              uint64_t wrong_from) {
    std::vector<program::Row> rows;
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t id = (i < wrong_from ? i * 7 : i * 7 + 1) % model_.program.n_vocab;
      rows.push_back({.token = {static_cast<int32_t>(id)},
                      .position = {static_cast<int32_t>(i)},
                      .wants_logits = true,
                      .tentative = i > begin});
    }
    EXPECT_TRUE(backend_->run(context, rows, {0, model_.program.main.size()}));
    const std::span<const float> logits = backend_->logits(context);
    return {logits.begin(), logits.end()};
  }

  // Logits after tokens [begin, end), `step` of them a call.
  std::vector<float> run(backend::ContextId context, uint64_t begin, uint64_t end, uint64_t step) {
    std::vector<float> all;
    for (uint64_t first = begin; first < end; first += step) {
      std::vector<program::Row> rows;
      for (uint64_t i = first; i < std::min(first + step, end); ++i) {
        rows.push_back({.token = {static_cast<int32_t>(i * 7 % model_.program.n_vocab)},
                        .position = {static_cast<int32_t>(i)},
                        .wants_logits = true});
      }
      EXPECT_TRUE(backend_->run(context, rows, {0, model_.program.main.size()}));
      const std::span<const float> logits = backend_->logits(context);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  backend::ContextId make_context_with(uint64_t n_tokens) {
    const backend::ContextId context = make_context();
    run(context, 0, n_tokens, 16);
    return context;
  }

  std::optional<gguf::File> file_;
  model::Model model_;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_P(HybridState, GoesOnElsewhereToTheBit) {
  const backend::ContextId first = make_context();
  run(first, 0, 37, 16);
  const backend::StateShape shape = backend_->state_shape(first);
  EXPECT_EQ(shape.fixed_bytes != 0, !model_.program.states.empty());
  std::vector<std::byte> positions(37 * shape.position_bytes);
  std::vector<std::byte> fixed(shape.fixed_bytes);
  backend_->export_state(first, {0, 37}, {.positions = positions, .fixed = fixed});
  const std::vector<float> expected = run(first, 37, 60, 5);

  const backend::ContextId second = make_context();
  run(second, 0, 11, 4);  // another timeline, to be replaced
  backend_->import_state(second, {0, 37}, {.positions = positions, .fixed = fixed});
  EXPECT_EQ(run(second, 37, 60, 5), expected);
}

TEST_P(HybridState, IsTheSameForEveryGroupingIntoCalls) {
  const std::vector<float> steps = run(make_context(), 0, 40, 1);
  EXPECT_EQ(run(make_context(), 0, 40, 16), steps);
  EXPECT_EQ(run(make_context(), 0, 40, 3), steps);
}

TEST_P(HybridState, IsTheSameForAllRowsAtOnce) {
  const std::vector<float> steps = run(make_context(), 0, kPositions, 1);
  EXPECT_EQ(run(make_context(), 0, kPositions, kPositions), steps);
}

// What is saved depends on the tokens alone.
TEST_P(HybridState, ExportsTheSameBytesForEveryGroupingIntoCalls) {
  const auto fixed_after = [&](uint64_t first_step, uint64_t step) {
    const backend::ContextId context = make_context();
    run(context, 0, 21, first_step);
    run(context, 0, 53, step);  // begins again
    std::vector<std::byte> fixed(backend_->state_shape(context).fixed_bytes);
    backend_->export_state(context, {0, 53}, {.fixed = fixed});
    return fixed;
  };
  const std::vector<std::byte> steps = fixed_after(21, 1);
  EXPECT_EQ(fixed_after(1, 53), steps);
  EXPECT_EQ(fixed_after(5, 7), steps);
}

TEST_P(HybridState, BeginsFromNothingAtPositionZero) {
  const backend::ContextId context = make_context();
  const std::vector<float> once = run(context, 0, 20, 7);
  EXPECT_EQ(run(context, 0, 20, 7), once);
}

TEST_P(HybridState, TentativeRowsComputeWhatOthersDo) {
  const backend::ContextId context = make_context();
  run(context, 0, 20, 10);
  const std::vector<float> tried = try_rows(context, 20, 28, 28);
  EXPECT_EQ(tried, run(make_context_with(20), 20, 28, 1));
}

// Wherever the first wrong token is, and wherever it lies in a chunk of the recurrence (16 rows).
TEST_P(HybridState, RowsThatAreTakenBackLeaveNothing) {
  const std::vector<float> expected = run(make_context(), 0, 60, 1);
  const size_t n_vocab = model_.program.n_vocab;
  for (const uint64_t begin : cases({31, 1, 8, 26, 27, 30, 32})) {
    for (const uint64_t right : cases({0, 5, 1, 2, 3, 4})) {
      SCOPED_TRACE(::testing::Message() << "from " << begin << ", right " << right);
      const backend::ContextId context = make_context_with(begin);
      // Twice in a row, so that what was kept is taken up by rows that are tentative themselves.
      uint64_t at = begin;
      for (int round = 0; round < 2; ++round) {
        const std::vector<float> tried = try_rows(context, at, at + 6, at + 1 + right);
        at += 1 + right;
        ASSERT_TRUE(std::equal(
            tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>((1 + right) * n_vocab),
            expected.begin() + static_cast<std::ptrdiff_t>((at - 1 - right) * n_vocab)));
      }
      const std::vector<float> rest = run(context, at, 60, 5);
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                             expected.begin() + static_cast<std::ptrdiff_t>(at * n_vocab)));
      backend_->release_context(context);
    }
  }
}

// More of them than a chunk has, so that two of its ends lie among them.
TEST_P(HybridState, ManyRowsAreTakenBackToo) {
  const std::vector<float> expected = run(make_context(), 0, 96, 1);
  const size_t n_vocab = model_.program.n_vocab;
  for (const uint64_t begin : cases({31, 20, 30})) {
    for (const uint64_t right : cases({0, 18, 1, 2, 3, 12, 17, 29, 31})) {
      SCOPED_TRACE(::testing::Message() << "from " << begin << ", right " << right);
      const backend::ContextId context = make_context_with(begin);
      try_rows(context, begin, begin + 32, begin + 1 + right);
      const uint64_t at = begin + 1 + right;
      const std::vector<float> rest = run(context, at, 96, 5);
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                             expected.begin() + static_cast<std::ptrdiff_t>(at * n_vocab)));
      backend_->release_context(context);
    }
  }
}

TEST_P(HybridState, IsExportedWithoutWhatIsTakenBack) {
  for (const uint64_t begin : {20u, 28u, 31u}) {
    for (uint64_t right = 0; right < 5; ++right) {
      SCOPED_TRACE(::testing::Message() << "from " << begin << ", right " << right);
      const backend::ContextId first = make_context_with(begin);
      try_rows(first, begin, begin + 6, begin + 1 + right);
      const uint64_t end = begin + 1 + right;
      const backend::StateShape shape = backend_->state_shape(first);
      std::vector<std::byte> positions(end * shape.position_bytes);
      std::vector<std::byte> fixed(shape.fixed_bytes);
      backend_->export_state(first, {0, end}, {.positions = positions, .fixed = fixed});
      const backend::ContextId second = make_context_with(7);
      backend_->import_state(second, {0, end}, {.positions = positions, .fixed = fixed});
      const std::vector<float> expected = run(make_context_with(end), end, end + 8, 3);
      EXPECT_EQ(run(second, end, end + 8, 3), expected);
      // Looking at it took nothing from the first either.
      EXPECT_EQ(run(first, end, end + 8, 3), expected);
      backend_->release_context(first);
      backend_->release_context(second);
    }
  }
}

// A row's choice lies in an array of fixed size: more must be refused before it runs.
TEST(CpuBackend, RefusesMoreExpertsOfATokenThanItHasRoomFor) {
  const auto backend = backend::make_backend("cpu", {.n_threads = 1});
  ASSERT_TRUE(backend);
  program::Route route;
  route.out.n_used = 256;
  EXPECT_TRUE((*backend)->supports({.label = "route", .operation = route}));
  route.out.n_used = 257;
  EXPECT_FALSE((*backend)->supports({.label = "route", .operation = route}));
}

using Names = std::tuple<std::string, std::string>;
INSTANTIATE_TEST_SUITE_P(, HybridState,
                         ::testing::Values(Names("qwen3next", "reference"),
                                           Names("qwen3next", "cpu"), Names("qwen35", "cpu"),
                                           Names("qwen35moe", "cpu"), Names("gpt_oss", "cpu")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace godwit
