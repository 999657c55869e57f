// mma.m16n8k16 with f32 accumulators for both 16-bit types, and the split of an f32 pair into a
// high and a low part of that type, which together keep 16 (bf16) or 21 (f16) mantissa bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace godwit::cuda::persistent {

struct Bf16 {
  using Pair = __nv_bfloat162;
  // f16's range is too small for raw activations: they are brought near 1 first (matvec.cuh).
  static constexpr bool kScale = false;

  static __device__ __forceinline__ Pair narrow(float2 v) { return __float22bfloat162_rn(v); }
  static __device__ __forceinline__ float2 widen(Pair v) { return __bfloat1622float2(v); }
  static __device__ __forceinline__ void multiply(float (&d)[4], uint4 a, uint2 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  }
};

struct F16 {
  using Pair = __half2;
  static constexpr bool kScale = true;

  static __device__ __forceinline__ Pair narrow(float2 v) { return __float22half2_rn(v); }
  static __device__ __forceinline__ float2 widen(Pair v) { return __half22float2(v); }
  static __device__ __forceinline__ void multiply(float (&d)[4], uint4 a, uint2 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  }
};

template <class Half>
__device__ __forceinline__ uint32_t bits_of(typename Half::Pair v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof(bits));
  return bits;
}

// Returns the high parts, leaves the low ones.
template <class Half>
__device__ __forceinline__ uint32_t split(float2 v, uint32_t& low) {
  const typename Half::Pair high = Half::narrow(v);
  const float2 back = Half::widen(high);
  low = bits_of<Half>(Half::narrow(make_float2(v.x - back.x, v.y - back.y)));
  return bits_of<Half>(high);
}

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace godwit::cuda::persistent
