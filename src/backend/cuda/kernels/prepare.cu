// What is done once: RoPE tables, asking whether there is code for the card and how fast it reads.
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {
namespace {

constexpr unsigned kThreads = 256;

// (cos, sin)(position * frequency) * magnitude, in double, rounded once. One thread per pair.
__global__ void __launch_bounds__(kThreads)
    rope_angles(const double* frequencies, uint32_t half, uint64_t n, double magnitude,
                float2* table) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    double s = 0;
    double c = 0;
    sincos(static_cast<double>(i / half) * frequencies[i % half], &s, &c);
    table[i] = make_float2(static_cast<float>(c * magnitude), static_cast<float>(s * magnitude));
  }
}

// Grid-stride, eight loads in flight per thread.
__global__ void __launch_bounds__(kThreads)
    read_all(const uint4* data, uint64_t n, uint32_t* sink) {
  constexpr int kUnroll = 8;
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  uint32_t seen = 0;
  uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kUnroll - 1) * step < n; i += kUnroll * step) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = __ldcs(data + i + u * step);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) seen ^= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (seen == 0x9e3779b9u) *sink = seen;
}

}  // namespace

cudaError_t enqueue_read(cudaStream_t stream, const std::byte* data, uint64_t bytes,
                         uint32_t* sink) {
  read_all<<<2048, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(data), bytes / 16, sink);
  return cudaGetLastError();
}

cudaError_t find_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, rope_angles);
}

cudaError_t enqueue_rope_table(const double* frequencies, double magnitude, uint64_t n_positions,
                               const RopeTable& table) {
  const uint32_t half = table.n_rot / 2;
  const uint64_t n = n_positions * half;
  const uint64_t blocks = (n + kThreads - 1) / kThreads;
  rope_angles<<<static_cast<unsigned>(blocks < 65535 ? blocks : 65535), kThreads>>>(
      frequencies, half, n, magnitude, const_cast<float2*>(table.data));
  return cudaGetLastError();
}

}  // namespace godwit::cuda
