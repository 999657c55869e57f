// One decode step of a shape against double precision, and what the kernel says of itself: whether
// the shapes that must run on an executor do, and right.
#pragma once

#include <string>

#include "grader/make_twin.h"
#include "grader/subject.h"

namespace godwit::grader {

struct ShapeOutcome {
  std::string shape;
  std::string description;
  double error = 0;  // the largest of the steps, against D
  std::string failure;
};

struct ShapeCheckSettings {
  GradedShape shape;
  TwinPlace place = TwinPlace::kDevice;
  uint64_t n_positions = 500;
  uint64_t n_steps = 3;
};

// Errors: no twin, a model that the backend refuses.
[[nodiscard]] Result<ShapeOutcome> check_shape(const ShapeCheckSettings& settings,
                                               const SubjectMaker& maker);

}  // namespace godwit::grader
