#include "grader/twin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backend/reference/reference_backend.h"
#include "grader/closed_form.h"
#include "grader/kernel_tests.h"
#include "grader/mutant.h"
#include "grader/relative_error.h"
#include "program/validate.h"

namespace godwit::grader {
namespace {

constexpr uint64_t kPositions = 96;

GradedShape small_shape() {
  GradedShape shape = *find_graded_shape("tiny");
  shape.n_layers = 2;
  shape.ffn = 320;
  shape.n_vocab = 256;
  return shape;
}

std::vector<float> twin_logits(Twin& twin, const GradedModel& model, const TwinStep& step) {
  std::vector<float> logits(model.shape.n_vocab);
  twin.step(step, logits, {});
  return logits;
}

// The reference backend with the twin's weights and its cache of [0, kPositions), in double.
std::unique_ptr<backend::Backend> reference_of(const GradedModel& model, const Twin& twin,
                                               std::vector<std::vector<std::byte>>& weights,
                                               backend::ContextId& context) {
  auto backend = *reference::make_reference_backend({.n_threads = 1});
  std::vector<std::span<const std::byte>> spans;
  for (uint32_t i = 0; i < model.tensors.size(); ++i) weights.push_back(twin.tensor_bytes(i));
  for (const auto& bytes : weights) spans.emplace_back(bytes);
  EXPECT_TRUE(backend->load(model.program, spans, {}));
  context = *backend->make_context(
      {.n_positions = kPositions + 1, .k_type = TensorType::kF32, .v_type = TensorType::kF32});
  std::vector<uint16_t> bits(kPositions * model.shape.position_numbers());
  twin.read_cache(0, bits);
  std::vector<double> wide(bits.size());
  std::ranges::transform(bits, wide.begin(), bf16_to_f32);
  backend->import_state(context, {0, kPositions}, {.positions = std::as_bytes(std::span(wide))});
  return backend;
}

// D and the reference backend differ by the bf16 rounding of the newest row alone.
void expect_agrees_with_reference(const GradedShape& shape) {
  const GradedModel model = make_random_model(shape, 3, kPositions);
  ASSERT_TRUE(program::validate(model.program));
  const auto twin = make_host_twin(model, kPositions + 1);
  std::vector<std::vector<std::byte>> weights;
  backend::ContextId context;
  const auto backend = reference_of(model, *twin, weights, context);
  const TokenId token = graded_token(model, 3, 0);
  const program::Row row{.token = token, .position = {kPositions}, .wants_logits = true};
  ASSERT_TRUE(backend->run(context, {&row, 1}, {0, model.program.main.size()}));
  for (const TwinPrecision precision : {TwinPrecision::kFloat, TwinPrecision::kDouble}) {
    const std::vector<float> logits =
        twin_logits(*twin, model, {.token = token, .position = kPositions, .precision = precision});
    EXPECT_LT((relative_error<float, float>(logits, backend->logits(context))), 1e-3);
  }
}

TEST(Twin, AgreesWithReferenceBackend) { expect_agrees_with_reference(small_shape()); }

TEST(Twin, AgreesOnHalvesBiasesAndHeadNorms) {
  GradedShape shape = small_shape();
  shape.pairs = program::RopePairs::kHalves;
  shape.qkv_biases = true;
  shape.head_norms = true;
  shape.tied = false;
  expect_agrees_with_reference(shape);
}

TEST(Twin, FloatIsCloseToDouble) {
  const GradedModel model = make_random_model(small_shape(), 4, kPositions);
  const auto twin = make_host_twin(model, kPositions + 1);
  const auto of = [&](TwinPrecision precision) {
    return twin_logits(*twin, model,
                       {.token = {5}, .position = kPositions, .precision = precision});
  };
  const double error =
      relative_error<float, float>(of(TwinPrecision::kFloat), of(TwinPrecision::kDouble));
  EXPECT_LT(error, 1e-5);
  EXPECT_GT(error, 0.0);  // two precisions, not one twice
}

TEST(Twin, EveryMutantChangesLogitsOrFailsItsTest) {
  const GradedModel model = make_random_model(small_shape(), 5, kPositions);
  const auto twin = make_host_twin(model, kPositions + 1);
  const auto of = [&](Mutant mutant) {
    return twin_logits(*twin, model, {.token = {5}, .position = kPositions, .mutant = mutant});
  };
  const std::vector<float> right = of(Mutant::kNone);
  for (const MutantRow& row : kMutants) {
    if (row.mutant == Mutant::kLast128) continue;  // the history is shorter
    EXPECT_GT((relative_error<float, float>(of(row.mutant), right)), 1e-4) << row.name;
  }
}

TEST(Twin, TracesEveryStepOfTheProgram) {
  const GradedModel model = make_random_model(small_shape(), 6, kPositions);
  const auto twin = make_host_twin(model, kPositions + 1);
  std::map<std::string, size_t> steps;
  std::vector<float> logits(model.shape.n_vocab);
  twin->step({.token = {1}, .position = 3}, logits,
             [&](std::string_view step, std::string_view, std::span<const double> values) {
               EXPECT_TRUE(std::isfinite(values[0]));
               ++steps[std::string(step)];
             });
  for (const program::Step& step : model.program.main) EXPECT_EQ(steps.count(step.label), 1u);
}

constexpr ClosedFormSettings closed_form() { return {.shape = {}, .place = TwinPlace::kHost}; }

TestOutcome count_with(Mutant mutant) {
  ClosedFormSettings settings = closed_form();
  settings.shape = small_shape();
  const std::vector<uint64_t> lengths{1, 63, 64, 65, 700};
  return *counting_test(settings, *make_twin_subjects(TwinPrecision::kFloat, mutant), lengths);
}

TestOutcome needle_with(Mutant mutant) {
  ClosedFormSettings settings = closed_form();
  settings.shape = small_shape();
  const std::vector<uint64_t> positions = needle_positions(300, 64);
  return *needle_test(settings, *make_twin_subjects(TwinPrecision::kFloat, mutant), 300, positions);
}

TEST(ClosedForm, RightImplementationPasses) {
  const TestOutcome counting = count_with(Mutant::kNone);
  EXPECT_TRUE(counting.passed) << counting.worst << " " << counting.detail;
  const TestOutcome needle = needle_with(Mutant::kNone);
  EXPECT_TRUE(needle.passed) << needle.worst << " " << needle.detail;
}

TEST(ClosedForm, CountingFailsOnLostPositionsAndWrongHeads) {
  for (const Mutant mutant : {Mutant::kHalfHistory, Mutant::kLast128, Mutant::kDropSplit,
                              Mutant::kStaleRow, Mutant::kWrongGqa}) {
    EXPECT_FALSE(count_with(mutant).passed) << mutant_name(mutant);
  }
}

TEST(ClosedForm, NeedleFailsOnLostPositionsAndWrongHeads) {
  for (const Mutant mutant : {Mutant::kHalfHistory, Mutant::kLast128, Mutant::kDropSplit,
                              Mutant::kStaleRow, Mutant::kWrongGqa}) {
    EXPECT_FALSE(needle_with(mutant).passed) << mutant_name(mutant);
  }
}

TEST(ValueRule, IsWhatThePythonReferenceMakes) {
  // tools/megakernel_reference.py, uniform(7, 4, 0.5, 1.0) and (7, 4, 2.0, 0.0).
  const ValueRule around_one{
      .kind = ValueRule::Kind::kUniform, .seed = 7, .half_width = 0.5f, .offset = 1.0f};
  const ValueRule wide{.kind = ValueRule::Kind::kUniform, .seed = 7, .half_width = 2.0f};
  std::vector<uint16_t> found;
  for (uint64_t i = 0; i < 4; ++i) found.push_back(bf16_value(around_one, 0, i, 4));
  for (uint64_t i = 0; i < 4; ++i) found.push_back(bf16_value(wide, 0, i, 4));
  const std::vector<uint16_t> expected{0x3f64, 0x3f04, 0x3fb3, 0x3f8b,
                                       0xbee2, 0xbff7, 0x3fcd, 0x3eaa};
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace godwit::grader
