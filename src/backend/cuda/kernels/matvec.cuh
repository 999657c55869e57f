// y[t, r] = sum over c of W[r, c] * n[t, c], n the (normed) activations; then Finish (launch.h).
//
// Shapes: W [rows, stride] of W's type, up to kMaxProducts of them over the same columns; x
//   [n_rows, stride] f32, padded with zeros; norm [stride] f32.
// Preconditions: stride a multiple of kColumnStep; n_rows <= R; R * stride floats of shared memory.
// Bytes: rows * stride * sizeof(W), once for all R rows; floor = that over the read bandwidth.
// Work split: blocks of 8 warps walk over pairs of weight rows, a warp a pair (the same row of gate
//   and up for kGated), a lane every 32nd 16-byte load; four loads of each row in flight. Each
//   block brings x in and norms it for itself: a few kilobytes from L2.
// Arithmetic: bounded; fp32, one fma per weight in column order per lane, then a fixed tree. The
//   same for R = 1 and R = kGroupRows, so a row's bits do not depend on its company.
// Synchronisation: the first rows of weights are asked for before wait_for_inputs().
// Reference: reference::mat_mul, reference::rms_norm.
#pragma once

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

inline constexpr int kMatVecWarps = 8;
inline constexpr int kMatVecUnroll = 4;

// Where element i of a row of activations lies in shared memory: both float4 of eight columns apart
// by half a row, so that a warp's reads fall on different banks.
template <int per>
__device__ __forceinline__ uint32_t shared_index(uint32_t i, uint32_t stride) {
  if constexpr (per == 4) return i;
  return i % 8 / 4 * (stride / 2) + i / 8 * 4 + i % 4;
}

template <class W, int R>
__device__ __forceinline__ void bring_rows(const MatVecArgs& args, uint32_t stride, float* rows,
                                           float* area) {
  for (uint32_t t = 0; t < R; ++t) {
    float* const to = rows + t * stride;
    if (t >= args.n_rows) {
      for (uint32_t i = threadIdx.x; i < stride; i += blockDim.x) to[i] = 0.0f;
      continue;
    }
    const float* const x = args.x.row(args.picked == nullptr ? t : args.picked[t]);
    float factor = 1.0f;
    if (args.norm != nullptr) {
      float squares = 0.0f;
      for (uint32_t i = threadIdx.x; i < stride; i += blockDim.x)
        squares = fmaf(x[i], x[i], squares);
      const float mean = block_sum<kMatVecWarps>(squares, area) / static_cast<float>(args.x.width);
      factor = 1.0f / sqrtf(mean + args.epsilon);
    }
    for (uint32_t i = threadIdx.x; i < stride; i += blockDim.x) {
      const float value = args.norm == nullptr ? x[i] : x[i] * factor * args.norm[i];
      to[shared_index<kPerLoad<W>>(i, stride)] = value;
    }
  }
  __syncthreads();
}

// Both rows of a pair: the sums of all R rows of activations, in every lane.
template <class W, int R>
__device__ __forceinline__ void multiply_pair(const W* a, const W* b, const float* rows,
                                              uint32_t stride, float (&sums)[2][R]) {
  constexpr int kPer = kPerLoad<W>;
  const uint32_t n_loads = stride / kPer;
  const auto* const wa = reinterpret_cast<const uint4*>(a);
  const auto* const wb = reinterpret_cast<const uint4*>(b);
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int t = 0; t < R; ++t) sums[0][t] = sums[1][t] = 0.0f;
  const auto accumulate = [&](uint32_t u, uint4 va, uint4 vb) {
    float fa[kPer];
    float fb[kPer];
    unpack(va, fa, W{});
    unpack(vb, fb, W{});
#pragma unroll
    for (int t = 0; t < R; ++t) {
#pragma unroll
      for (int h = 0; h < kPer / 4; ++h) {
        const float4 x =
            *reinterpret_cast<const float4*>(rows + t * stride + h * (stride / 2) + u * 4);
        sums[0][t] = fmaf(fa[4 * h], x.x, sums[0][t]);
        sums[1][t] = fmaf(fb[4 * h], x.x, sums[1][t]);
        sums[0][t] = fmaf(fa[4 * h + 1], x.y, sums[0][t]);
        sums[1][t] = fmaf(fb[4 * h + 1], x.y, sums[1][t]);
        sums[0][t] = fmaf(fa[4 * h + 2], x.z, sums[0][t]);
        sums[1][t] = fmaf(fb[4 * h + 2], x.z, sums[1][t]);
        sums[0][t] = fmaf(fa[4 * h + 3], x.w, sums[0][t]);
        sums[1][t] = fmaf(fb[4 * h + 3], x.w, sums[1][t]);
      }
    }
  };
  uint32_t u = lane;
  for (; u + 32 * (kMatVecUnroll - 1) < n_loads; u += 32 * kMatVecUnroll) {
    uint4 va[kMatVecUnroll];
    uint4 vb[kMatVecUnroll];
#pragma unroll
    for (int i = 0; i < kMatVecUnroll; ++i) {
      va[i] = load_once(wa + u + 32 * i);
      vb[i] = load_once(wb + u + 32 * i);
    }
#pragma unroll
    for (int i = 0; i < kMatVecUnroll; ++i) accumulate(u + 32 * i, va[i], vb[i]);
  }
  for (; u < n_loads; u += 32) accumulate(u, load_once(wa + u), load_once(wb + u));
#pragma unroll
  for (int t = 0; t < R; ++t) {
    sums[0][t] = warp_sum(sums[0][t]);
    sums[1][t] = warp_sum(sums[1][t]);
  }
}

__device__ __forceinline__ void finish_one(const MatVecArgs& args, const Product& product,
                                           uint32_t t, uint64_t r, float y) {
  if (product.bias != nullptr) y += product.bias[r];
  float* const out = product.out.row(t) + r;
  if (args.finish == Finish::kAdd) {
    *out = fmaf(args.scale, y, *out);
  } else {
    *out = softcapped(args.scale * y, args.softcap);
  }
}

// The pair that a warp works on.
struct RowPair {
  const Product* first = nullptr;
  const Product* second = nullptr;
  uint64_t a = 0;  // row of first
  uint64_t b = 0;  // row of second
  bool both = true;
};

__device__ __forceinline__ RowPair find_pair(const MatVecArgs& args, uint64_t pair) {
  if (args.finish == Finish::kGated) {
    return {&args.products[0], &args.products[1], pair, pair, true};
  }
  uint32_t i = 0;
  while (pair >= (args.products[i].weight.rows + 1) / 2) {
    pair -= (args.products[i].weight.rows + 1) / 2;
    ++i;
  }
  const Product* const product = &args.products[i];
  const bool both = 2 * pair + 1 < product->weight.rows;
  return {product, product, 2 * pair, both ? 2 * pair + 1 : 2 * pair, both};
}

template <class W, int R>
__global__ void __launch_bounds__(kMatVecWarps * 32)
    matvec(const __grid_constant__ MatVecArgs args, uint64_t n_pairs) {
  extern __shared__ __align__(16) float rows[];  // [R, stride]
  __shared__ float area[kMatVecWarps];
  const auto stride = static_cast<uint32_t>(args.products[0].weight.stride);
  const auto weights = [&](const Product& product, uint64_t row) {
    return reinterpret_cast<const W*>(product.weight.data) + row * stride;
  };
  uint64_t pair = uint64_t{blockIdx.x} * kMatVecWarps + threadIdx.x / 32;
  const uint32_t lane = threadIdx.x % 32;
  let_next_begin();
#if __CUDA_ARCH__ >= 900
  if (pair < n_pairs && lane < 2) {
    const RowPair p = find_pair(args, pair);
    const W* const ahead = lane == 0 ? weights(*p.first, p.a) : weights(*p.second, p.b);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(ahead),
                 "r"(stride * static_cast<uint32_t>(sizeof(W))));
  }
#endif
  wait_for_inputs();
  bring_rows<W, R>(args, stride, rows, area);
  for (; pair < n_pairs; pair += uint64_t{gridDim.x} * kMatVecWarps) {
    const RowPair p = find_pair(args, pair);
    float sums[2][R];
    multiply_pair<W, R>(weights(*p.first, p.a), weights(*p.second, p.b), rows, stride, sums);
#pragma unroll
    for (uint32_t t = 0; t < R; ++t) {
      if (lane != t || t >= args.n_rows) continue;
      if (args.finish == Finish::kGated) {
        float gate = sums[0][t];
        float up = sums[1][t];
        if (p.first->bias != nullptr) gate += p.first->bias[p.a];
        if (p.second->bias != nullptr) up += p.second->bias[p.b];
        gate = args.activation == program::Activation::kSilu ? silu(gate) : gelu(gate);
        p.second->out.row(t)[p.b] = gate * up;
        continue;
      }
      finish_one(args, *p.first, t, p.a, sums[0][t]);
      if (p.both) finish_one(args, *p.second, t, p.b, sums[1][t]);
    }
  }
}

}  // namespace godwit::cuda
