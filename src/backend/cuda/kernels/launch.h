// What host code sees of the kernels: one function per launch, which enqueues and does not wait.
// Arguments are plain data; every pointer is device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/choices.h"
#include "backend/cuda/views.h"

namespace godwit::cuda {

struct Queue {
  cudaStream_t stream = nullptr;
  Overlap overlap = Overlap::kNone;
};

// Whether this build has code for the current card.
[[nodiscard]] cudaError_t find_code();

// Fills a table from frequencies [n_rot / 2], on the default stream.
[[nodiscard]] cudaError_t enqueue_rope_table(const double* frequencies, double magnitude,
                                             uint64_t n_positions, const RopeTable& table);

}  // namespace godwit::cuda
