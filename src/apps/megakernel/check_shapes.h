// `godwit_megakernel shapes`: a few decode steps of each model shape against double precision, and
// whether the executor that should run them does. With few layers also what compute-sanitizer runs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace godwit::apps {

struct ShapesOptions {
  std::vector<std::string> shapes{"smollm2-135m", "llama-1b",     "llama-3b",
                                  "llama-8b",     "qwen2.5-1.5b", "qwen3-1.7b"};
  std::string backend = "cuda";
  uint32_t n_layers = 2;  // 0: all
  uint64_t n_vocab = 0;   // 0: the shape's own
  uint64_t n_positions = 500;
  uint64_t n_steps = 3;
  std::string require;  // what describe() must contain
  bool on_host = false;
  std::string json;
};

void add_shapes_options(CLI::App& command, ShapesOptions& options);
// Errors: shapes that are wrong, or run by another executor than required; all are tried first.
[[nodiscard]] Status check_shapes(const ShapesOptions& options);

}  // namespace godwit::apps
