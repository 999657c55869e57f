// Small device functions that the kernels share: 16-byte loads as floats, fixed-order reductions,
// activations, and the two ends of programmatic dependent launch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "base/tensor_type.h"

namespace godwit::cuda {

// Until the kernels before this one in the stream are done and what they wrote can be read. Every
// block of every kernel passes here before it ends, so that waiting for one kernel is waiting for
// all before it.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel may take free places on the card; it waits as above.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

template <class W>
inline constexpr int kPerLoad = 16 / static_cast<int>(sizeof(W));

__device__ __forceinline__ void unpack(uint4 v, float (&out)[4], float) {
  out[0] = __uint_as_float(v.x);
  out[1] = __uint_as_float(v.y);
  out[2] = __uint_as_float(v.z);
  out[3] = __uint_as_float(v.w);
}
__device__ __forceinline__ void unpack(uint4 v, float (&out)[8], __nv_bfloat16) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}
__device__ __forceinline__ void unpack(uint4 v, float (&out)[8], __half) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}

// A weight or cached value that is read once.
__device__ __forceinline__ uint4 load_once(const uint4* p) { return __ldcs(p); }

__device__ __forceinline__ float load_as_float(const std::byte* p, TensorType type) {
  if (type == TensorType::kF32) return *reinterpret_cast<const float*>(p);
  if (type == TensorType::kF16) return __half2float(*reinterpret_cast<const __half*>(p));
  return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(p));
}

__device__ __forceinline__ void store_float(std::byte* p, TensorType type, float value) {
  if (type == TensorType::kF32) {
    *reinterpret_cast<float*>(p) = value;
  } else if (type == TensorType::kF16) {
    *reinterpret_cast<__half*>(p) = __float2half_rn(value);
  } else {
    *reinterpret_cast<__nv_bfloat16*>(p) = __float2bfloat16_rn(value);
  }
}

// The same sum, by the same tree, in every lane.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  }
  return v;
}

// Over a block of n_warps whole warps, in every thread; `area` holds n_warps floats and is free
// again after the next __syncthreads().
template <int n_warps>
__device__ __forceinline__ float block_sum(float v, float* area) {
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) area[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < n_warps; ++w) sum += area[w];
  return sum;
}
template <int n_warps>
__device__ __forceinline__ float block_max(float v, float* area) {
  v = warp_max(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) area[threadIdx.x / 32] = v;
  __syncthreads();
  float highest = area[0];
#pragma unroll
  for (int w = 1; w < n_warps; ++w) highest = fmaxf(highest, area[w]);
  return highest;
}

__device__ __forceinline__ float silu(float g) { return g / (1.0f + expf(-g)); }
// The tanh form (program::Activation::kGelu).
__device__ __forceinline__ float gelu(float g) {
  return 0.5f * g * (1.0f + tanhf(0.7978845608028654f * fmaf(0.044715f * g * g, g, g)));
}
__device__ __forceinline__ float softcapped(float x, float cap) {
  return cap == 0.0f ? x : cap * tanhf(x / cap);
}

}  // namespace godwit::cuda
