// From measurements to a verdict. The tolerance is derived from what was measured, never chosen:
// tol = 2.04 E, E being the largest difference between two right implementations.
#pragma once

#include <string>
#include <vector>

#include "grader/measurements.h"

namespace godwit::grader {

inline constexpr double kToleranceFactor = 2.04;
// Of a step of the kernel, and of its logits, against double precision.
inline constexpr double kDoubleTolerance = 1e-3;
// A tolerance of more than this would let mistakes through, whatever its derivation.
inline constexpr double kLargestE = 0.05;

struct Gate {
  std::string name;
  bool passed = false;
  double found = 0;
  double limit = 0;
  std::string detail;
};

struct Verdict {
  double e = 0;    // R against T
  double z = 0;    // R against itself
  double tol = 0;  // kToleranceFactor * e
  size_t n_mutants = 0;
  size_t n_mutants_caught = 0;
  std::vector<Gate> gates;

  [[nodiscard]] bool passed() const;
};

// What is missing fails: no seeds, no steps, a mutant or a test that was not run. Gates of the
// kernel are there only if `measurements.subject` is not empty.
[[nodiscard]] Verdict judge(const Measurements& measurements);

// The smallest error of a mutant over the seeds; 0 for none, and for a NaN among them.
[[nodiscard]] double margin_of(const MutantErrors& mutant);

}  // namespace godwit::grader
