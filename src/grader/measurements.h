// What a run of the grader found, as numbers; gates.h judges it, report.h prints it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grader/closed_form.h"

namespace godwit::grader {

// One entry per decode step. R: the bf16 PyTorch model; T and D: the twin in f32 and in double;
// K: the kernel. Errors are relative (relative_error.h), against the one named second.
struct SeedErrors {
  uint64_t seed = 0;
  double r_r = 0;           // R against itself, on freshly allocated inputs: its largest
  std::vector<double> t_r;  // [n_steps]
  std::vector<double> t_d;  // [steps that D ran]
  std::vector<double> k_r;  // [n_steps]; empty without a kernel, as the next
  std::vector<double> k_d;  // [steps that D ran]
};

struct MutantErrors {
  std::string name;
  std::vector<double> m_r;  // T with the mutant against R, first step of each seed
  std::string caught_by;    // the named test that failed on it; empty: none was needed, or none did
};

// A Program step of the kernel against D, both from the start of the token.
struct BufferError {
  std::string step;
  std::string buffer;
  double error = 0;
};

// The first layers of the model alone, for kernels that know whole tokens only: which depth is the
// first to differ.
struct DepthError {
  uint32_t n_layers = 0;
  double error = 0;  // logits against D
  std::string failure;
};

// The named tests that a kernel must pass, as they call themselves.
inline constexpr std::array<std::string_view, 7> kKernelTests = {"KV rows",
                                                                 "other bytes of the cache",
                                                                 "NaN beyond the length",
                                                                 "launches repeat bit for bit",
                                                                 "lengths at edges",
                                                                 "counting",
                                                                 "needle"};

struct Measurements {
  std::string model;
  std::string subject;  // what it says of itself; empty without a kernel
  uint64_t n_positions = 0;
  uint64_t n_steps = 0;
  std::vector<SeedErrors> seeds;
  std::vector<MutantErrors> mutants;
  std::vector<BufferError> buffers;  // empty for a kernel that knows whole tokens only
  std::vector<DepthError> depths;
  std::vector<TestOutcome> tests;  // of the kernel
};

}  // namespace godwit::grader
