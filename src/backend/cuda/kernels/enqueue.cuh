// The one way that kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

struct Shape {
  dim3 grid;
  unsigned threads = 0;
  size_t shared_bytes = 0;
};

template <class... Params, class... Args>
cudaError_t enqueue(const Queue& queue, const Shape& shape, void (*kernel)(Params...),
                    const Args&... args) {
  if (shape.shared_bytes > size_t{48} << 10) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = queue.stream;
  config.attrs = &attribute;
  config.numAttrs = queue.overlap == Overlap::kProgrammatic ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, Params(args)...);
}

}  // namespace godwit::cuda
