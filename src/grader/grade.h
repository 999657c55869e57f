// The measuring part of the grader: runs R's logits (from files), the twins, the mutants and the
// kernel against each other over seeds and steps, and the named tests on the first seed. It judges
// nothing (gates.h) and prints nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "grader/measurements.h"
#include "grader/reference_files.h"

namespace godwit::grader {

struct GradeSettings {
  PlanSettings plan;
  std::filesystem::path reference;  // folder of R's logits
  TwinPlace place = TwinPlace::kDevice;
  const SubjectMaker* kernel = nullptr;  // nullptr: R, T, D and the mutants alone
  uint64_t n_double_steps = 4;           // of each seed that D runs
  uint64_t n_launches = 1000;
  uint64_t needle_stride = 64;  // positions between needles
};

// Called with a line for the person who waits.
using GradeProgress = std::function<void(std::string_view line)>;

// Cached positions, decode steps and the positions beyond that tests use.
[[nodiscard]] uint64_t capacity_of(const PlanSettings& plan);

// Errors: R's files, no device or memory, a model that the backend refuses.
[[nodiscard]] Result<Measurements> measure(const GradeSettings& settings,
                                           const GradeProgress& progress);

}  // namespace godwit::grader
