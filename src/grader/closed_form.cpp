#include "grader/closed_form.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "grader/relative_error.h"

namespace godwit::grader {
namespace {

// Per logit, of the largest: f32 sums of 33,000 terms with activations in two bf16 parts stay
// below 3e-5; a lost position of a bucket of 1,000 is 1e-3.
constexpr double kCountingTolerance = 1e-4;
// Of the norm; the others weigh n e^-30.
constexpr double kNeedleTolerance = 1e-3;
constexpr uint64_t kNeedleSeed = 7;

// logits of a residual stream in the closed-form models: the stream, normed.
std::vector<double> normed(std::vector<double> x, double epsilon) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  const double factor = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
  for (double& v : x) v *= factor;
  return x;
}

double bf16_of(double value) {
  return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
}

uint64_t kv_head_of(const GradedShape& shape, uint64_t head) {
  return head / (shape.n_heads / shape.n_kv_heads);
}

// What the newest row's value is where the embedding lights one dimension: weight and result are
// rounded to bf16.
double newest_value(const GradedShape& shape) {
  const double dim = static_cast<double>(shape.dim);
  const double lit = 1.0 / std::sqrt(1.0 / dim + static_cast<double>(shape.epsilon));
  return bf16_of(lit * bf16_of(1.0 / std::sqrt(dim)));
}

std::vector<double> counting_logits(const GradedShape& shape, uint64_t length) {
  std::vector<double> x(shape.dim, 0.0);
  x[kCountingEmbedDim] = 1.0;
  const double n = static_cast<double>(length + 1);
  for (uint64_t head = 0; head < shape.n_heads; ++head) {
    const uint64_t kv_head = kv_head_of(shape, head);
    for (uint64_t p = 0; p < length; ++p) {
      x[head * shape.head_dim + bucket_of(p, length, kv_head)] += 1.0;
    }
    for (uint64_t d = 0; d < kCountingBuckets; ++d) x[head * shape.head_dim + d] /= n;
    x[head * shape.head_dim + kCountingCurrentDim % shape.head_dim] += newest_value(shape) / n;
  }
  return normed(std::move(x), static_cast<double>(shape.epsilon));
}

void keep_worst(TestOutcome& outcome, double ratio, std::string where) {
  if (!(ratio <= outcome.worst)) {
    outcome.worst = ratio;
    outcome.detail = std::move(where);
  }
}

// A subject that will not run the model fails the test, not the grader.
TestOutcome refused(TestOutcome outcome, const Error& error) {
  outcome.passed = false;
  outcome.worst = HUGE_VAL;
  outcome.detail = error.message;
  return outcome;
}

void compare_counts(TestOutcome& outcome, std::span<const float> found,
                    std::span<const double> expected, uint64_t length) {
  const double largest = *std::ranges::max_element(expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    // A NaN counts as infinitely wrong.
    const double scale = kCountingTolerance * std::max(std::abs(expected[i]), 0.01 * largest);
    const double ratio = std::isnan(difference) ? HUGE_VAL : difference / scale;
    if (ratio > outcome.worst) {
      keep_worst(outcome, ratio,
                 fmt::format("length {}, dimension {}: found {:.7g}, expected {:.7g}", length, i,
                             static_cast<double>(found[i]), expected[i]));
    }
  }
}

// A row of the needle model's cache: keys with or without the needle, values as ruled.
std::vector<uint16_t> needle_row(const GradedModel& model, uint64_t position, bool needle) {
  const GradedShape& s = model.shape;
  std::vector<uint16_t> row(s.position_numbers(), 0);
  for (uint64_t h = 0; h < s.n_kv_heads; ++h) {
    if (needle) {
      const NeedleDims dims = needle_dims(s);
      row[h * s.head_dim + dims.first] = f32_to_bf16(kNeedleKey);
      row[h * s.head_dim + dims.second] = f32_to_bf16(kNeedleKey);
    }
    for (uint64_t d = 0; d < s.head_dim; ++d) {
      row[s.kv_width() + h * s.head_dim + d] = cache_value(
          model.cache, {0, CachePart::kValue, position, h, d}, s.n_kv_heads, s.head_dim);
    }
  }
  return row;
}

// The stream where every head's output is `values` [n_kv_heads, head_dim] of its KV head.
std::vector<double> needle_logits(const GradedShape& shape, std::span<const double> values,
                                  uint64_t token) {
  std::vector<double> x(shape.dim, 0.0);
  for (uint64_t i = 0; i <= token; ++i) x[i] = 1.0;
  for (uint64_t head = 0; head < shape.n_heads; ++head) {
    for (uint64_t d = 0; d < shape.head_dim; ++d) {
      x[head * shape.head_dim + d] += values[kv_head_of(shape, head) * shape.head_dim + d];
    }
  }
  return normed(std::move(x), static_cast<double>(shape.epsilon));
}

std::vector<double> cached_values(const GradedModel& model, uint64_t position) {
  const std::vector<uint16_t> row = needle_row(model, position, false);
  std::vector<double> values;
  for (uint64_t i = 0; i < model.shape.kv_width(); ++i) {
    values.push_back(static_cast<double>(bf16_to_f32(row[model.shape.kv_width() + i])));
  }
  return values;
}

// W_v n of token 1, which lights dimensions 0 and 1.
std::vector<double> newest_values(const GradedModel& model) {
  const GradedShape& s = model.shape;
  const ValueRule& rule = model.tensors[model.layers[0].v].rule;
  const double lit =
      1.0 / std::sqrt(2.0 / static_cast<double>(s.dim) + static_cast<double>(s.epsilon));
  std::vector<double> values;
  for (uint64_t i = 0; i < s.kv_width(); ++i) {
    double sum = 0;
    for (uint64_t c = 0; c < 2; ++c) {
      sum += lit * static_cast<double>(bf16_to_f32(bf16_value(rule, i, c, s.dim)));
    }
    values.push_back(bf16_of(sum));
  }
  return values;
}

}  // namespace

Result<TestOutcome> counting_test(const ClosedFormSettings& settings, const SubjectMaker& maker,
                                  std::span<const uint64_t> lengths) {
  TestOutcome outcome{.name = "counting", .passed = false, .detail = {}};
  for (const uint64_t length : lengths) {
    const GradedModel model = make_counting_model(settings.shape, length);
    Result<std::unique_ptr<Twin>> twin = make_twin(model, settings.place, length + 1);
    if (!twin) return fail(std::move(twin).error());
    Result<std::unique_ptr<Subject>> subject = maker.make(model, **twin, length + 1);
    if (!subject) return refused(std::move(outcome), subject.error());
    std::vector<float> logits(model.shape.n_vocab, std::nanf(""));
    (*subject)->step({0}, length, logits);
    compare_counts(outcome, logits, counting_logits(model.shape, length), length);
  }
  outcome.passed = outcome.worst <= 1.0;
  return outcome;
}

Result<TestOutcome> needle_test(const ClosedFormSettings& settings, const SubjectMaker& maker,
                                uint64_t length, std::span<const uint64_t> positions) {
  TestOutcome outcome{.name = "needle", .passed = false, .detail = {}};
  const GradedModel model = make_needle_model(settings.shape, kNeedleSeed);
  Result<std::unique_ptr<Twin>> twin = make_twin(model, settings.place, length + 1);
  if (!twin) return fail(std::move(twin).error());
  Result<std::unique_ptr<Subject>> made = maker.make(model, **twin, length + 1);
  if (!made) return refused(std::move(outcome), made.error());
  Subject& subject = **made;

  std::vector<float> logits(model.shape.n_vocab);
  const auto compare = [&](std::span<const double> values, uint64_t token, uint64_t position) {
    std::ranges::fill(logits, std::nanf(""));
    subject.step({static_cast<int32_t>(token)}, length, logits);
    const double error =
        relative_error<float, double>(logits, needle_logits(model.shape, values, token));
    keep_worst(outcome, error / kNeedleTolerance,
               fmt::format("needle at {} of {}: error {:.3g}", position, length, error));
  };
  for (const uint64_t position : positions) {
    subject.write_cache(position, needle_row(model, position, true));
    compare(cached_values(model, position), 0, position);
    subject.write_cache(position, needle_row(model, position, false));
  }
  compare(newest_values(model), 1, length);
  outcome.passed = outcome.worst <= 1.0;
  return outcome;
}

std::vector<uint64_t> needle_positions(uint64_t length, uint64_t stride) {
  std::set<uint64_t> positions;
  const auto around = [&](uint64_t boundary) {
    for (uint64_t p = boundary == 0 ? 0 : boundary - 1; p <= boundary + 1; ++p) {
      if (p < length) positions.insert(p);
    }
  };
  for (uint64_t i = 0; i <= 16; ++i) around(length * i / 16);
  for (uint64_t i = 0; i <= 132; ++i) around(length * i / 132);
  for (uint64_t p = 0; p < length; p += stride) around(p);
  around(length);
  return {positions.begin(), positions.end()};
}

}  // namespace godwit::grader
