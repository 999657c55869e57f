// Decoding on an NVIDIA GPU with the decode_block() of the host: proof that quant/<type>.h is
// device code, and the reference that CUDA kernels are checked against. Compiled only with
// GODWIT_CUDA=ON; includes the CUDA runtime, so host code stays away from it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "base/tensor_type.h"

namespace godwit::quant {

// Enqueues the decoding of n_blocks blocks at `src` (device memory, file layout, any alignment) to
// `out` [n_blocks * block_weights] f32. cudaErrorInvalidValue for a type without a format.
[[nodiscard]] cudaError_t enqueue_decode(TensorType type, const std::byte* src, size_t n_blocks,
                                         float* out, cudaStream_t stream);

}  // namespace godwit::quant
