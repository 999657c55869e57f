#include "backend/cuda/persistent/bench/kernels.h"

#include "backend/cuda/persistent/bench/values.h"
#include "backend/cuda/persistent/ring.cuh"

namespace godwit::cuda::persistent {
namespace {

constexpr int kBlocks = 1056;
constexpr int kBlockThreads = 512;
constexpr uint32_t kReadRing = 8;

__device__ uint64_t first_index() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ uint64_t index_step() { return static_cast<uint64_t>(gridDim.x) * blockDim.x; }

__global__ void matrix_kernel(uint16_t* to, uint64_t n, uint64_t id, TensorType type) {
  for (uint64_t i = first_index(); i < n; i += index_step()) to[i] = matrix_bits(id, i, type);
}

__global__ void vector_kernel(float* to, uint64_t n, uint64_t id) {
  for (uint64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = vector_value(id, i);
}

__global__ void cache_kernel(uint16_t* to, CacheFill fill) {
  const KvLayout& layout = fill.layout;
  const uint64_t n = uint64_t{layout.n_kv_heads} * layout.capacity * layout.head_dim;
  for (uint64_t i = first_index(); i < n; i += index_step()) {
    const auto dim = static_cast<uint32_t>(i % layout.head_dim);
    const uint64_t position = i / layout.head_dim % layout.capacity;
    const auto head = static_cast<uint32_t>(i / layout.head_dim / layout.capacity);
    if (position < fill.from) continue;
    const uint64_t k = layout.k_index(head, position, dim) / 2;
    const uint64_t v = layout.v_index(head, position, dim) / 2;
    to[k] = fill.nan ? uint16_t{0xffff} : kv_bits(fill.layer, k, fill.type);
    to[v] = fill.nan ? uint16_t{0xffff} : kv_bits(fill.layer, v, fill.type);
  }
}

// Empty on cards before 9.0, which have no bulk copies and never run it; it compiles for them.
__global__ void read_kernel(SlotReads reads) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char ring[];
  __shared__ unsigned long long full[kReadRing];
  if (threadIdx.x != 0) return;
  for (auto& barrier : full) barrier_init(&barrier, 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const uint64_t policy = evict_first_policy();
  const auto wait = [&](uint64_t k) {
    while (!barrier_done(&full[k % kReadRing], static_cast<uint32_t>(k / kReadRing % 2))) {
    }
  };
  uint64_t k = 0;
  for (;; ++k) {
    const uint64_t i = (k / reads.run * gridDim.x + blockIdx.x) * reads.run + k % reads.run;
    if (i >= reads.n_slots) break;
    if (k >= kReadRing) wait(k - kReadRing);
    barrier_expect(&full[k % kReadRing], kSlotBytes);
    char* const to = ring + k % kReadRing * kSlotBytes;
    if (reads.evict_first) {
      copy_slot(to, reads.from + i * kSlotBytes, &full[k % kReadRing], policy);
    } else {
      copy_slot(to, reads.from + i * kSlotBytes, &full[k % kReadRing]);
    }
  }
  for (uint64_t j = k > kReadRing ? k - kReadRing : 0; j < k; ++j) wait(j);
#endif
}

}  // namespace

void fill_matrix(uint16_t* to, uint64_t n, uint64_t id, TensorType type, cudaStream_t stream) {
  matrix_kernel<<<kBlocks, kBlockThreads, 0, stream>>>(to, n, id, type);
}

void fill_vector(float* to, uint64_t n, uint64_t id, cudaStream_t stream) {
  vector_kernel<<<1, kBlockThreads, 0, stream>>>(to, n, id);
}

void fill_cache(uint16_t* to, const CacheFill& fill, cudaStream_t stream) {
  cache_kernel<<<kBlocks, kBlockThreads, 0, stream>>>(to, fill);
}

cudaError_t read_slots(const SlotReads& reads, cudaStream_t stream) {
  const int bytes = kReadRing * kSlotBytes;
  const cudaError_t error =
      cudaFuncSetAttribute(read_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  read_kernel<<<reads.n_ctas, 32, bytes, stream>>>(reads);
  return cudaGetLastError();
}

}  // namespace godwit::cuda::persistent
