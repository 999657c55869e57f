#include "grader/shape_check.h"

#include <algorithm>
#include <cmath>

#include "grader/relative_error.h"

namespace godwit::grader {

Result<ShapeOutcome> check_shape(const ShapeCheckSettings& settings, const SubjectMaker& maker) {
  constexpr uint64_t kSeed = 5;
  const uint64_t capacity = settings.n_positions + settings.n_steps;
  const GradedModel model = make_random_model(settings.shape, kSeed, settings.n_positions);
  Result<std::unique_ptr<Twin>> twin = make_twin(model, settings.place, capacity);
  if (!twin) return fail(std::move(twin).error());
  Result<std::unique_ptr<Subject>> kernel = maker.make(model, **twin, capacity);
  if (!kernel) return fail(std::move(kernel).error());
  ShapeOutcome outcome{.shape = std::string(settings.shape.name),
                       .description = (*kernel)->describe(),
                       .error = 0,
                       .failure = {}};
  std::vector<float> expected(model.shape.n_vocab);
  std::vector<float> found(model.shape.n_vocab);
  for (uint64_t i = 0; i < settings.n_steps; ++i) {
    const TokenId token = graded_token(model, kSeed, i);
    const uint64_t position = settings.n_positions + i;
    (*twin)->step({.token = token, .position = position, .precision = TwinPrecision::kDouble},
                  expected, {});
    std::ranges::fill(found, std::nanf(""));
    (*kernel)->step(token, position, found);
    outcome.error = std::max(outcome.error, relative_error<float, float>(found, expected));
  }
  outcome.failure = (*kernel)->failure();
  return outcome;
}

}  // namespace godwit::grader
