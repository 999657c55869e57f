// Two tests whose right answer is a formula, so that no reference can share the mistake. Counting:
// keys are zero and values one-hot, so every output is a share of the history. Needle: one position
// has a score that drowns the others, so every output is that position's value. Both see one lost,
// doubled or misread position, which an end-to-end tolerance cannot.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "grader/make_twin.h"
#include "grader/subject.h"

namespace godwit::grader {

struct TestOutcome {
  std::string name;
  bool passed = false;
  double worst = 0;    // in units of what is allowed: passes up to 1
  std::string detail;  // where the worst is, or what went wrong
};

struct ClosedFormSettings {
  GradedShape shape;
  TwinPlace place = TwinPlace::kDevice;  // where weights and cache are made
};

// At each length: so many cached positions, and the newest.
[[nodiscard]] Result<TestOutcome> counting_test(const ClosedFormSettings& settings,
                                                const SubjectMaker& maker,
                                                std::span<const uint64_t> lengths);
// A needle at each of the positions [0, length), and one in the newest.
[[nodiscard]] Result<TestOutcome> needle_test(const ClosedFormSettings& settings,
                                              const SubjectMaker& maker, uint64_t length,
                                              std::span<const uint64_t> positions);

// First, last, and both sides of every multiple of 1/16, 1/132 and `stride` of the length: where
// splits may begin.
[[nodiscard]] std::vector<uint64_t> needle_positions(uint64_t length, uint64_t stride);

}  // namespace godwit::grader
