#include <cuda_runtime.h>

#include <cstdint>

#include "grader/bandwidth.h"

namespace godwit::grader {
namespace {

constexpr uint32_t kSlotBytes = 16384;
constexpr uint32_t kSlots = 12;
constexpr unsigned kThreads = 512;
constexpr uint64_t kBytes = uint64_t{4} << 30;
constexpr int kWarmUp = 2;
constexpr int kPasses = 12;

__global__ void fill(uint32_t* data, uint64_t n) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    data[i] = static_cast<uint32_t>(i * 2654435761u) ^ 0x9e3779b9u;
  }
}

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void wait_for(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

// Each CTA reads its own slice through a ring of slots: thread 0 refills what all warps have read.
__global__ void read_all(const char* data, uint64_t bytes, uint32_t* sink) {
  extern __shared__ __align__(128) char slots[];
  __shared__ __align__(8) uint64_t full[kSlots];
  __shared__ __align__(8) uint64_t empty[kSlots];
  const auto n = static_cast<uint32_t>(bytes / gridDim.x / kSlotBytes);
  const char* slice = data + uint64_t{blockIdx.x} * n * kSlotBytes;
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < kSlots; ++s) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&full[s])));
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&empty[s])),
                   "r"(blockDim.x / 32));
    }
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  const auto issue = [&](uint32_t k) {
    const uint32_t s = k % kSlots;
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&full[s])),
        "r"(kSlotBytes));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(slots + uint64_t{s} * kSlotBytes)),
        "l"(slice + uint64_t{k} * kSlotBytes), "r"(kSlotBytes), "r"(shared_address(&full[s]))
        : "memory");
  };
  if (threadIdx.x == 0) {
    for (uint32_t k = 0; k < kSlots && k < n; ++k) issue(k);
  }
  uint32_t mixed = 0;
  for (uint32_t k = 0; k < n; ++k) {
    const uint32_t s = k % kSlots;
    const uint32_t parity = k / kSlots & 1;
    wait_for(&full[s], parity);
    const auto* words = reinterpret_cast<const uint4*>(slots + uint64_t{s} * kSlotBytes);
    for (uint32_t i = threadIdx.x; i < kSlotBytes / 16; i += blockDim.x) {
      const uint4 w = words[i];
      mixed ^= w.x ^ w.y ^ w.z ^ w.w;
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(&empty[s])));
    }
    if (threadIdx.x == 0 && k + kSlots < n) {
      wait_for(&empty[s], parity);
      issue(k + kSlots);
    }
  }
  if (mixed == 0x12345) *sink = mixed;  // so that nothing is left out
}

// Frees and destroys whatever was made, whichever way measure() ends.
struct Resources {
  char* data = nullptr;
  uint32_t* sink = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ~Resources() {
    cudaFree(data);
    cudaFree(sink);
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
  }
};

cudaError_t measure(Resources& r, std::vector<double>& samples) {
  int n_sms = 0;
  const int shared_bytes = kSlotBytes * kSlots;
  cudaError_t status = cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, 0);
  const auto then = [&](cudaError_t next) {
    if (status == cudaSuccess) status = next;
    return status == cudaSuccess;
  };
  if (!then(cudaMalloc(&r.data, kBytes)) || !then(cudaMalloc(&r.sink, 4)) ||
      !then(cudaEventCreate(&r.begin)) || !then(cudaEventCreate(&r.end)) ||
      !then(cudaFuncSetAttribute(read_all, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 shared_bytes))) {
    return status;
  }
  const auto blocks = static_cast<unsigned>(n_sms);
  fill<<<8 * blocks, kThreads>>>(reinterpret_cast<uint32_t*>(r.data), kBytes / 4);
  const double bytes = static_cast<double>(kBytes / blocks / kSlotBytes * kSlotBytes * blocks);
  for (int i = 0; i < kWarmUp + kPasses; ++i) {
    cudaEventRecord(r.begin);
    read_all<<<blocks, kThreads, shared_bytes>>>(r.data, kBytes, r.sink);
    cudaEventRecord(r.end);
    float ms = 0;
    if (!then(cudaGetLastError()) || !then(cudaEventSynchronize(r.end)) ||
        !then(cudaEventElapsedTime(&ms, r.begin, r.end))) {
      return status;
    }
    if (i >= kWarmUp) samples.push_back(bytes / static_cast<double>(ms) * 1e-6);
  }
  return status;
}

}  // namespace

Bandwidth measure_device_bandwidth() {
  Bandwidth result;
  Resources resources;
  const cudaError_t status = measure(resources, result.samples_gbs);
  if (status != cudaSuccess) result = {{}, cudaGetErrorString(status)};
  return result;
}

}  // namespace godwit::grader
