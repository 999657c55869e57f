// Moves weights into the order of layout.h, once, when a model is loaded.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/persistent/phase.h"

namespace godwit::cuda::persistent {

inline constexpr uint32_t kMaxMatrices = 3;

struct RepackSource {
  const uint16_t* data = nullptr;  // [rows, stride] of a 16-bit type, on the card
  uint64_t rows = 0;
  uint64_t stride = 0;  // elements
};

struct RepackArgs {
  Shape shape;
  RepackSource sources[kMaxMatrices];  // as PhasePlan::matrices
  uint16_t* packed = nullptr;          // packed_elements(shape)
};

[[nodiscard]] cudaError_t repack(const RepackArgs& args, cudaStream_t stream);

}  // namespace godwit::cuda::persistent
