// What the grader found as text (the table of the task, filled in) and as the "grader" object of
// benchmarks/h200.json. Prints nothing itself.
#pragma once

#include <string>

#include "grader/gates.h"
#include "grader/measurements.h"

namespace godwit::grader {

[[nodiscard]] std::string report_text(const Measurements& measurements, const Verdict& verdict);
// One JSON object: passed, E, Z, tol, mutants, mutants_caught, and everything measured.
[[nodiscard]] std::string report_json(const Measurements& measurements, const Verdict& verdict);

}  // namespace godwit::grader
