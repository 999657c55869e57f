// How the backend is made. Environment twins, for comparing executors on one model:
// GODWIT_CUDA_EXECUTOR=stepwise|persistent, GODWIT_CUDA_OVERLAP=none|programmatic,
// GODWIT_CUDA_CAPTURE=none|graph, GODWIT_CUDA_PREFILL=chunks|rows.
#pragma once

#include "backend/cuda/choices.h"
#include "base/result.h"

namespace godwit::cuda {

struct CudaSettings {
  ExecutorChoice executor = ExecutorChoice::kBest;
  Overlap overlap = Overlap::kProgrammatic;
  Capture capture = Capture::kGraph;
  PrefillChoice prefill = PrefillChoice::kChunks;
};

// Errors: a variable with another value.
[[nodiscard]] Result<CudaSettings> settings_from_environment();

}  // namespace godwit::cuda
