// What is done once: RoPE tables, and asking whether there is code for the card.
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

}  // namespace

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
