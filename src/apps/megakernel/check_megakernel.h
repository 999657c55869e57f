// `godwit check megakernel`, and the same as a program of its own (main/main.cpp): the grader of
// the decode path. Two calls with tools/megakernel_reference.py between them: one writes the plan,
// the other reads R's logits, measures, prints the table and says whether every gate passed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct MegakernelOptions {
  std::string folder;  // of the plan and R's logits
  bool write_plan = false;
  std::string backend = "cuda";  // "none": R, T, D and the mutants alone
  std::string shape = "llama-1b";
  uint64_t n_positions = 32768;
  uint64_t n_steps = 32;
  std::vector<uint64_t> seeds{11, 20, 21, 22};
  uint64_t n_double_steps = 4;
  uint64_t n_launches = 1000;
  uint64_t needle_stride = 64;
  bool on_host = false;  // twins without a GPU: for small shapes
  std::string json;      // file to write
  std::string require;   // what describe() must contain
};

void add_megakernel_options(CLI::App& command, MegakernelOptions& options);
// Errors: what measure() says, or a gate that failed.
[[nodiscard]] Status check_megakernel(const MegakernelOptions& options);

}  // namespace godwit::apps
