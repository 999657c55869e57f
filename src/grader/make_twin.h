// The twin on the host or on the device, checked: the way in for everyone but twin_*.
#pragma once

#include <memory>

#include "base/result.h"
#include "grader/twin.h"

namespace godwit::grader {

enum class TwinPlace : uint8_t { kHost, kDevice };

// Errors: no CUDA, no device, too little device memory. `model` must outlive the twin.
[[nodiscard]] Result<std::unique_ptr<Twin>> make_twin(const GradedModel& model, TwinPlace place,
                                                      uint64_t capacity);

}  // namespace godwit::grader
