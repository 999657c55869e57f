// The first launch of Attend: one warp per head of a row.
//   q: turned_q[t, h] = scale * factor(position) * rope(norm(q[t, h]))
//   k, v: cache[position] = rope(norm(k)), v, rounded to the cache's type.
//
// Shapes: as program::Attend; grid (n_heads + 2 * n_kv_heads, n_rows), 32 threads, head_dim floats
//   of shared memory.
// Arithmetic: bounded; fp32, sums of squares by the warp's fixed tree; angles from the table.
// Synchronisation: reads activations after wait_for_inputs(); the cache is next read by the next
//   launch.
// Reference: reference::rope_head, reference::rms_norm.
#pragma once

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

// A head of a row, heads `step` floats apart, whose values are normed together by `span`.
struct NormedHead {
  const float* row = nullptr;
  uint32_t step = 0;
  uint32_t head = 0;
  uint32_t head_dim = 0;
  const float* norm = nullptr;
  uint32_t span = 0;
  float epsilon = 0.0f;
};

__device__ __forceinline__ void norm_head(const NormedHead& h, float* out) {
  const uint32_t lane = threadIdx.x;
  const float* const own = h.row + uint64_t{h.head} * h.step;
  float factor = 1.0f;
  uint32_t at = 0;  // of the head within its span
  if (h.norm != nullptr) {
    const uint32_t heads_per_span = h.span / h.head_dim;
    const uint32_t first = h.head / heads_per_span * heads_per_span;
    at = (h.head - first) * h.head_dim;
    float squares = 0.0f;
    for (uint32_t i = lane; i < h.span; i += 32) {
      const float x = h.row[uint64_t{first + i / h.head_dim} * h.step + i % h.head_dim];
      squares = fmaf(x, x, squares);
    }
    factor = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(h.span) + h.epsilon);
  }
  for (uint32_t i = lane; i < h.head_dim; i += 32) {
    out[i] = h.norm == nullptr ? own[i] : own[i] * factor * h.norm[at + i];
  }
  __syncwarp();
}

__device__ __forceinline__ void turn_head(const RopeTable& rope, program::RopePairs pairs,
                                          uint64_t position, float* head) {
  const uint32_t half = rope.n_rot / 2;
  const bool adjacent = pairs == program::RopePairs::kAdjacent;
  for (uint32_t i = threadIdx.x; i < half; i += 32) {
    const float2 angle = rope.data[position * half + i];
    float& a = head[adjacent ? 2 * i : i];
    float& b = head[adjacent ? 2 * i + 1 : i + half];
    const float x = a;
    const float y = b;
    a = fmaf(x, angle.x, -(y * angle.y));
    b = fmaf(x, angle.y, y * angle.x);
  }
  __syncwarp();
}

// What a query is multiplied by (program::PositionScale), scale included.
__device__ __forceinline__ float query_scale(const AttendArgs& args, uint64_t position) {
  if (args.position_length == 0) return args.scale;
  const auto periods = static_cast<double>(position / args.position_length);
  return static_cast<float>(static_cast<double>(args.scale) *
                            (1.0 + args.position_beta * log1p(periods)));
}

__global__ void __launch_bounds__(32) append(const __grid_constant__ AttendArgs args) {
  extern __shared__ float head_values[];
  const uint32_t t = blockIdx.y;
  const KvLayout& layout = args.kv.layout;
  const uint32_t dim = layout.head_dim;
  let_next_begin();
  wait_for_inputs();
  const auto position = static_cast<uint64_t>(args.inputs[t].position);
  if (blockIdx.x < args.n_heads) {
    const uint32_t head = blockIdx.x;
    norm_head({.row = args.q.row(t),
               .step = args.gated ? 2 * dim : dim,
               .head = head,
               .head_dim = dim,
               .norm = args.q_norm,
               .span = args.q_norm_span,
               .epsilon = args.q_epsilon},
              head_values);
    turn_head(args.rope, args.pairs, position, head_values);
    const float scale = query_scale(args, position);
    float* const out = args.scratch.turned_q + t * args.scratch.widest + uint64_t{head} * dim;
    for (uint32_t i = threadIdx.x; i < dim; i += 32) out[i] = head_values[i] * scale;
    return;
  }
  const uint32_t part = blockIdx.x - args.n_heads;
  const uint32_t head = part % layout.n_kv_heads;
  if (part >= layout.n_kv_heads) {
    const float* const v = args.v.row(t) + uint64_t{head} * dim;
    for (uint32_t i = threadIdx.x; i < dim; i += 32) {
      store_float(args.kv.data + layout.v_index(head, position, i), args.kv.v_type, v[i]);
    }
    return;
  }
  norm_head({.row = args.k.row(t),
             .step = dim,
             .head = head,
             .head_dim = dim,
             .norm = args.k_norm,
             .span = args.k_norm_span,
             .epsilon = args.k_epsilon},
            head_values);
  turn_head(args.rope, args.pairs, position, head_values);
  for (uint32_t i = threadIdx.x; i < dim; i += 32) {
    store_float(args.kv.data + layout.k_index(head, position, i), args.kv.k_type, head_values[i]);
  }
}

}  // namespace godwit::cuda
