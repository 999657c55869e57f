// Device work of megakernel_bench besides the kernel under test.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kv_layout.h"
#include "base/tensor_type.h"

namespace godwit::cuda::persistent {

struct CacheFill {
  KvLayout layout;
  uint64_t layer = 0;
  TensorType type = TensorType::kBF16;
  uint64_t from = 0;  // first position that is filled
  bool nan = false;   // instead of random values
};

void fill_matrix(uint16_t* to, uint64_t n, uint64_t id, TensorType type, cudaStream_t stream);
void fill_vector(float* to, uint64_t n, uint64_t id, cudaStream_t stream);
void fill_cache(uint16_t* to, const CacheFill& fill, cudaStream_t stream);
// Reads n_slots slots by bulk copies, a ring of 8 to a CTA, and looks at nothing.
struct SlotReads {
  const std::byte* from = nullptr;
  uint64_t n_slots = 0;
  uint32_t n_ctas = 0;
  uint32_t run = 1;  // slots side by side that one CTA reads
  bool evict_first = false;
};
[[nodiscard]] cudaError_t read_slots(const SlotReads& reads, cudaStream_t stream);

}  // namespace godwit::cuda::persistent
