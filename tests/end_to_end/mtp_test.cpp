// The head that predicts one token further against what transformers' layers make of the same
// weights (tools/make_mtp_fixture.py), on both backends: over the hidden states of the model, and
// over its own.
#include <gtest/gtest.h>

#include <ostream>

#include "backend/registry.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "transformers_logits.h"

namespace godwit {
namespace {

using program::Row;
using program::StepList;

struct Case {
  std::string model;
  std::string backend;
  size_t rows_per_call;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << " on " << c.backend << ", " << c.rows_per_call << " rows";
}

class MtpHeadTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    expected_ = testing::read_expected(GetParam().model + ".mtp_logits");
    Result<gguf::File> file =
        gguf::File::open(testing::transformers_fixture(GetParam().model + ".gguf"));
    ASSERT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
    Result<model::Model> model = model::build_model(*file_, {.with_mtp = true});
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    ASSERT_FALSE(model_.program.mtp.empty());
    auto backend = backend::make_backend(GetParam().backend, {.n_threads = 2});
    ASSERT_TRUE(backend);
    backend_ = std::move(*backend);
    ASSERT_TRUE(backend_->load(model_.program, model_.weights, {}));
    const auto context = backend_->make_context({.n_positions = expected_.tokens.size(),
                                                 .k_type = TensorType::kF32,
                                                 .v_type = TensorType::kF32,
                                                 .max_rows = GetParam().rows_per_call,
                                                 .max_logit_rows = GetParam().rows_per_call});
    ASSERT_TRUE(context) << context.error().message;
    context_ = *context;
  }

  // The model over its own tokens, then the head over the tokens after them. The fixture's rows
  // hold the latter; the first token is that of its last row.
  void run_rows(size_t begin, size_t end) {
    std::vector<Row> rows;
    std::vector<Row> further;
    for (size_t i = begin; i < end; ++i) {
      const int32_t own = i == 0 ? expected_.tokens.back() : expected_.tokens[i - 1];
      const Position position{static_cast<int32_t>(i)};
      rows.push_back({.token = {own}, .position = position});
      further.push_back(
          {.token = {expected_.tokens[i]}, .position = position, .wants_logits = true});
    }
    ASSERT_TRUE(backend_->run(context_, rows, {0, model_.program.main.size()}));
    ASSERT_TRUE(backend_->run(context_, further, {0, model_.program.mtp.size(), StepList::kMtp}));
    for (size_t i = begin; i < end; ++i) note(i, i - begin);
  }

  void note(size_t row, size_t of_call) {
    const size_t n = expected_.n_vocab;
    worst_ =
        std::max(worst_, testing::relative_error(backend_->logits(context_).subspan(of_call * n, n),
                                                 std::span(expected_.logits).subspan(row * n, n)));
  }

  testing::Expected expected_;
  std::optional<gguf::File> file_;
  model::Model model_;
  std::unique_ptr<backend::Backend> backend_;
  backend::ContextId context_;
  double worst_ = 0;
};

TEST_P(MtpHeadTest, PredictsWhatTransformersLayersPredict) {
  const size_t n_rows = expected_.tokens.size() - 1;
  size_t in_last_call = 0;
  for (size_t first = 0; first < n_rows; first += in_last_call) {
    in_last_call = std::min(GetParam().rows_per_call, n_rows - first);
    run_rows(first, first + in_last_call);
  }
  EXPECT_LE(worst_, 1e-4);

  // Once more, from the head's own hidden state.
  const size_t dim = model_.program.dim;
  std::vector<float> hidden(in_last_call * dim);
  backend_->read(context_, model_.program.mtp_hidden, hidden);
  backend_->write(context_, model_.program.mtp_hidden, std::span(hidden).last(dim));
  const Row chained{.token = {expected_.tokens.back()},
                    .position = {static_cast<int32_t>(n_rows)},
                    .wants_logits = true};
  ASSERT_TRUE(backend_->run(context_, std::span(&chained, 1),
                            {1, model_.program.mtp.size(), StepList::kMtp}));
  worst_ = 0;
  note(n_rows, 0);
  EXPECT_LE(worst_, 1e-4);
}

TEST(MtpHead, IsLeftOutUnlessAskedFor) {
  const Result<gguf::File> file =
      gguf::File::open(testing::transformers_fixture("qwen3next_mtp.gguf"));
  ASSERT_TRUE(file);
  const Result<model::Model> model = model::build_model(*file);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE(model->program.mtp.empty());
  EXPECT_EQ(model->program.kvs.size(), 1u);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* model : {"qwen3next_mtp", "qwen35_mtp"}) {
    for (const char* backend : {"reference", "cpu"}) {
      for (const size_t rows : {size_t{1}, size_t{7}, size_t{64}}) {
        cases.push_back({model, backend, rows});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, MtpHeadTest, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return test.param.model + "_" + test.param.backend + "_rows" +
         std::to_string(test.param.rows_per_call);
});

}  // namespace
}  // namespace godwit
