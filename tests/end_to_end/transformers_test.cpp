// Whole models against Hugging Face transformers: tiny random models with every feature, their
// logits after each of 48 tokens (tests/fixtures/transformers, made by
// tools/make_transformers_fixture.py), on both backends, as one prompt and token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <vector>

#include "backend/registry.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "transformers_fixtures.h"
#include "transformers_logits.h"

namespace godwit {
namespace {

using testing::Expected;
using testing::read_expected;
using testing::relative_error;

struct Case {
  std::string model;
  std::string backend;
  size_t rows_per_call;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << " on " << c.backend << ", " << c.rows_per_call << " rows";
}

class Transformers : public ::testing::TestWithParam<Case> {};

TEST_P(Transformers, LogitsOfEveryTokenAgree) {
  const Case& c = GetParam();
  const Expected expected = read_expected(c.model + ".logits");
  const Result<gguf::File> file =
      gguf::File::open(testing::transformers_fixture(c.model + ".gguf"));
  ASSERT_TRUE(file) << file.error().message;
  const Result<model::Model> model = model::build_model(*file);
  ASSERT_TRUE(model) << model.error().message;
  Result<std::unique_ptr<backend::Backend>> backend =
      backend::make_backend(c.backend, {.n_threads = 2});
  ASSERT_TRUE(backend) << backend.error().message;
  ASSERT_TRUE((*backend)->load(model->program, model->weights, {}));
  const Result<backend::ContextId> context =
      (*backend)->make_context({.n_positions = expected.tokens.size(),
                                .k_type = TensorType::kF32,
                                .v_type = TensorType::kF32,
                                .max_rows = c.rows_per_call,
                                .max_logit_rows = c.rows_per_call});
  ASSERT_TRUE(context) << context.error().message;

  double worst = 0;
  for (size_t first = 0; first < expected.tokens.size(); first += c.rows_per_call) {
    std::vector<program::Row> rows;
    for (size_t i = first; i < std::min(first + c.rows_per_call, expected.tokens.size()); ++i) {
      rows.push_back({.token = {expected.tokens[i]},
                      .position = {static_cast<int32_t>(i)},
                      .wants_logits = true});
    }
    (*backend)->run(*context, rows, {0, model->program.main.size()});
    const std::span<const float> logits = (*backend)->logits(*context);
    ASSERT_EQ(logits.size(), rows.size() * expected.n_vocab);
    for (size_t i = 0; i < rows.size(); ++i) {
      worst = std::max(
          worst, relative_error(logits.subspan(i * expected.n_vocab, expected.n_vocab),
                                std::span(expected.logits)
                                    .subspan((first + i) * expected.n_vocab, expected.n_vocab)));
    }
  }
  EXPECT_LE(worst, testing::kTransformersTolerance) << c.model << " on " << c.backend;
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& model : testing::transformers_models()) {
    for (const char* backend : {"reference", "cpu"}) {
      for (const size_t rows : {size_t{1}, size_t{7}, size_t{64}}) {
        cases.push_back({model, backend, rows});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, Transformers, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return test.param.model + "_" + test.param.backend + "_rows" +
         std::to_string(test.param.rows_per_call);
});

}  // namespace
}  // namespace godwit
