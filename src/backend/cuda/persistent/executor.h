// The persistent executor: one cooperative kernel per token. This header is all that the rest of
// the backend knows of it.
#pragma once

#include <memory>

#include "backend/cuda/decode_executor.h"
#include "backend/cuda/weights.h"

namespace godwit::cuda::persistent {

struct LoadSettings {
  const program::Program& program;  // outlives the executor
  const DeviceWeights& weights;     // likewise
  const DeviceFacts& device;
  cudaStream_t stream;  // where run() enqueues
};

// Bytes of the repacked weights, 0 for a program that load() refuses; callable before anything
// is on a card.
[[nodiscard]] uint64_t weight_bytes(const program::Program& program, const DeviceFacts& device);

// Repacks the weights. An error is the reason to fall back to the stepwise executor.
[[nodiscard]] Result<std::unique_ptr<DecodeExecutor>> load(const LoadSettings& settings);

}  // namespace godwit::cuda::persistent
