// What passes between the grader and tools/megakernel_reference.py: the plan (the model as rules,
// the tokens) goes out as plan.json; logits come back as seed_<n>.f32, [n_steps, n_vocab], beside
// reference.json.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "grader/graded_model.h"

namespace godwit::grader {

struct PlanSettings {
  GradedShape shape;
  uint64_t n_positions = 0;  // cached before the first step
  uint64_t n_steps = 0;
  std::vector<uint64_t> seeds;
};

// The plan as JSON text.
[[nodiscard]] std::string plan_text(const PlanSettings& settings);
[[nodiscard]] Status write_plan(const PlanSettings& settings, const std::filesystem::path& path);

struct ReferenceSeed {
  uint64_t seed = 0;
  double z = 0;  // its largest difference from itself
};

struct ReferenceRun {
  std::string torch;   // version
  std::string device;  // name
  std::vector<ReferenceSeed> seeds;
};

// Errors: no such file, JSON that is not what the script writes.
[[nodiscard]] Result<ReferenceRun> read_reference_run(const std::filesystem::path& folder);
// Errors: no such file, another size.
[[nodiscard]] Result<std::vector<float>> read_reference_logits(const std::filesystem::path& folder,
                                                               uint64_t seed, size_t numbers);

}  // namespace godwit::grader
