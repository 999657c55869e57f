// Runs a program step by step on a backend and on the oracle, each step on equal inputs, and
// compares every output with its bound. The first step that leaves its bound is where to look.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "testing/steps/step_bound.h"

namespace godwit::testing {

struct StepDifference {
  std::string step;    // label
  std::string buffer;  // name
  int32_t position = 0;
  size_t index = 0;     // within the row
  double expected = 0;  // the oracle's
  double found = 0;
  double bound = 0;

  // How much of the bound is used; above 1 is a failure. NaN counts as infinite.
  [[nodiscard]] double ratio() const;
};

struct StepCheckSettings {
  size_t n_prompt = 12;  // rows of one prompt call, from position 0
  size_t n_decode = 2;   // single rows after it
  uint64_t seed = 1;     // of the token ids
};

// The worst difference of each (step, call); `on_step` hears each as it is found and returns
// whether to go on. Both backends must have the program loaded. Errors: memory.
[[nodiscard]] Status check_steps(const StepContext& context, backend::Backend& oracle,
                                 backend::Backend& subject, const StepCheckSettings& settings,
                                 const std::function<bool(const StepDifference&)>& on_step);

}  // namespace godwit::testing
