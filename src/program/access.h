// Which buffers and weights a step touches: the one place that knows, for validation, traffic and
// the step-by-step check.
#pragma once

#include <array>
#include <vector>

#include "program/step.h"

namespace godwit::program {

struct Access {
  struct Use {
    BufferId buffer;
    uint64_t width;  // floats the step expects
  };
  std::vector<Use> reads;
  std::vector<Use> writes;  // ProjectAdd's target is in both
  std::vector<WeightRef> weights;
};

[[nodiscard]] Access access_of(const Operation& operation);

// The matrices of routed experts that a step multiplies with: gate, up, down. Null where it has
// none of that place.
[[nodiscard]] std::array<const ExpertMatrix*, 3> expert_matrices(const Operation& operation);

}  // namespace godwit::program
