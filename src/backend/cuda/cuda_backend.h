// NVIDIA GPUs: weights and KV on the card, prefill by cuBLASLt, decode by one of two executors
// (decode_executor.h). In a build without CUDA the same functions say so (not_built.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/settings.h"

namespace godwit::cuda {

// As the environment says (settings.h); every expert is resident. Errors: a build without CUDA, no
// card, one too old.
[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_cuda_backend(
    const backend::BackendSettings& settings);
[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_cuda_backend(
    const CudaSettings& settings);

// For `godwit devices`.
struct Card {
  std::string name;
  int capability = 0;  // 90 for 9.0
  int n_multiprocessors = 0;
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  std::string note;  // why it cannot be used, where it cannot
};
// Errors: a build without CUDA, no driver, no card.
[[nodiscard]] Result<std::vector<Card>> cards();
[[nodiscard]] bool built();

}  // namespace godwit::cuda
