// Attention of a whole chunk of rows over their history, on the tensor cores (prefill's second
// launch of Attend): out[t, h] = softmax(q[t, h] . K) V, K and V in operand order.
//
// Shapes: scratch.turned_q [n_rows, widest], already scaled; cache in Order::kOperand, heads of D.
// Preconditions: the chunk's own K and V are in the cache; rows at consecutive positions.
// Bytes: K and V of the positions seen, once per KV head and kChunkRows query rows, mostly from L2.
// Work split: a block is (KV head, kChunkRows of its rows x query heads, positions outside heads),
//   a warp 16 of them, one mma.m16n8k16 operand; it walks over tiles of 32 positions and loads K
//   and V straight into B operands. No shared memory.
// Arithmetic: bounded; queries and weights enter as two 16-bit numbers (high, and what it leaves
//   over), so a product keeps 16 bits (bf16) or 22 (f16); fp32 sums, running maximum. What lies
//   beyond a row's position is never multiplied, whatever it holds.
// Synchronisation: after wait_for_inputs().
// Reference: reference::attend_head.
#pragma once

#include <cfloat>

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

inline constexpr uint32_t kChunkWarps = 4;
inline constexpr uint32_t kChunkRows = kChunkWarps * 16;

__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                    __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                    __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// x and y as a pair of 16-bit numbers, and what that leaves over as another.
__device__ __forceinline__ uint32_t split_pair(float x, float y, uint32_t& low, __nv_bfloat16) {
  const __nv_bfloat162 high = __floats2bfloat162_rn(x, y);
  const float2 back = __bfloat1622float2(high);
  const __nv_bfloat162 rest = __floats2bfloat162_rn(x - back.x, y - back.y);
  low = *reinterpret_cast<const uint32_t*>(&rest);
  return *reinterpret_cast<const uint32_t*>(&high);
}
__device__ __forceinline__ uint32_t split_pair(float x, float y, uint32_t& low, __half) {
  const __half2 high = __floats2half2_rn(x, y);
  const float2 back = __half22float2(high);
  const __half2 rest = __floats2half2_rn(x - back.x, y - back.y);
  low = *reinterpret_cast<const uint32_t*>(&rest);
  return *reinterpret_cast<const uint32_t*>(&high);
}

// One of a lane's two rows of the operand.
struct ChunkRow {
  uint32_t t = 0;
  uint32_t head = 0;
  uint64_t begin = 0;  // positions seen; none for a row beyond the chunk
  uint64_t end = 0;
  float highest = -FLT_MAX;
  float sum = 0.0f;  // of this lane's positions
};

__device__ __forceinline__ ChunkRow chunk_row(const AttendArgs& args, uint32_t m, uint32_t group,
                                              uint32_t kv_head) {
  ChunkRow row;
  row.t = m / group;
  row.head = kv_head * group + m % group;
  if (row.t >= args.n_rows) return row;
  row.end = static_cast<uint64_t>(args.inputs[row.t].position) + 1;
  row.begin = args.window != 0 && row.end > args.window ? row.end - args.window : 0;
  return row;
}

// Pairs of values at positions of which those from `limit` on are to be 0.
__device__ __forceinline__ uint32_t keep_below(uint32_t pair, uint64_t position, uint64_t limit) {
  if (position + 1 < limit) return pair;
  return position < limit ? pair & 0xffffu : 0u;
}

// Weights of a tile from its scores, for one row: scores 2r and 2r + 1 of each n-tile are its own.
template <int r>
__device__ __forceinline__ float weigh_row(float (&s)[4][4], ChunkRow& row, uint64_t first,
                                           bool whole, float softcap) {
  float highest = row.highest;
#pragma unroll
  for (int p8 = 0; p8 < 4; ++p8) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& score = s[p8][2 * r + e];
      const uint64_t position = first + p8 * 8 + e;
      score = softcapped(score, softcap);
      if (!whole && (position < row.begin || position >= row.end)) score = -FLT_MAX;
      highest = fmaxf(highest, score);
    }
  }
  highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
  highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
  const float factor = row.highest == -FLT_MAX ? 0.0f : expf(row.highest - highest);
  row.highest = highest;
  row.sum *= factor;
#pragma unroll
  for (int p8 = 0; p8 < 4; ++p8) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& score = s[p8][2 * r + e];
      score = score == -FLT_MAX ? 0.0f : expf(score - highest);
      row.sum += score;
    }
  }
  return factor;
}

template <class T, int D>
__global__ void __launch_bounds__(kChunkWarps * 32)
    attend_chunk(const __grid_constant__ AttendArgs args) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t kv_head = blockIdx.y;
  const uint32_t group = args.n_heads / args.kv.layout.n_kv_heads;
  // The last rows have the longest histories: they begin first.
  const uint32_t m = (gridDim.x - 1 - blockIdx.x) * kChunkRows + threadIdx.x / 32 * 16 + lane / 4;
  wait_for_inputs();
  ChunkRow rows[2] = {chunk_row(args, m, group, kv_head), chunk_row(args, m + 8, group, kv_head)};

  uint32_t high[D / 16][4];
  uint32_t low[D / 16][4];
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const ChunkRow& row = rows[i % 2];
      const float* const q = args.scratch.turned_q + row.t * args.scratch.widest +
                             uint64_t{row.head} * D + k * 16 + i / 2 * 8 + lane % 4 * 2;
      const bool there = row.end != 0;
      high[k][i] = split_pair(there ? q[0] : 0.0f, there ? q[1] : 0.0f, low[k][i], T{});
    }
  }

  // What the warp's rows see together, and what all of them see.
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  uint64_t all_begin = 0;
  uint64_t all_end = ~uint64_t{0};
#pragma unroll
  for (const ChunkRow& row : rows) {
    if (row.end != 0) begin = min(begin, row.begin);
    end = max(end, row.end);
    all_begin = max(all_begin, row.begin);
    all_end = min(all_end, row.end);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    begin = min(begin, __shfl_xor_sync(0xffffffffu, begin, offset));
    end = max(end, __shfl_xor_sync(0xffffffffu, end, offset));
    all_begin = max(all_begin, __shfl_xor_sync(0xffffffffu, all_begin, offset));
    all_end = min(all_end, __shfl_xor_sync(0xffffffffu, all_end, offset));
  }

  const auto* const cache =
      reinterpret_cast<const uint4*>(args.kv.data + kv_head * args.kv.layout.head_bytes()) + lane;
  float acc[D / 8][4] = {};
  for (uint64_t tile = begin / kTilePositions; tile * kTilePositions < end; ++tile) {
    const uint64_t first = tile * kTilePositions;
    const bool whole = first >= all_begin && first + kTilePositions <= all_end;
    const uint4* const k = cache + tile * (D * kTilePositions * 2 / 8);
    const uint4* const v = k + D * kTilePositions / 8;
    float s[4][4] = {};
#pragma unroll
    for (int pair = 0; pair < D / 32; ++pair) {
#pragma unroll
      for (int p8 = 0; p8 < 4; ++p8) {
        const uint4 key = __ldg(k + (p8 * (D / 32) + pair) * 32);
        mma(s[p8], high[2 * pair], key.x, key.y, T{});
        mma(s[p8], low[2 * pair], key.x, key.y, T{});
        mma(s[p8], high[2 * pair + 1], key.z, key.w, T{});
        mma(s[p8], low[2 * pair + 1], key.z, key.w, T{});
      }
    }
    const uint64_t own = first + lane % 4 * 2;
    const float f0 = weigh_row<0>(s, rows[0], own, whole, args.softcap);
    const float f1 = weigh_row<1>(s, rows[1], own, whole, args.softcap);
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      acc[i][0] *= f0;
      acc[i][1] *= f0;
      acc[i][2] *= f1;
      acc[i][3] *= f1;
    }
#pragma unroll
    for (int p16 = 0; p16 < 2; ++p16) {
      uint32_t weight[4];
      uint32_t rest[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&from)[4] = s[2 * p16 + i / 2];
        weight[i] = split_pair(from[i % 2 * 2], from[i % 2 * 2 + 1], rest[i], T{});
      }
      const uint64_t at = own + p16 * 16;
#pragma unroll
      for (int pair = 0; pair < D / 16; ++pair) {
        uint4 value = __ldg(v + (p16 * (D / 16) + pair) * 32);
        if (!whole) {
          value.x = keep_below(value.x, at, end);
          value.y = keep_below(value.y, at + 8, end);
          value.z = keep_below(value.z, at, end);
          value.w = keep_below(value.w, at + 8, end);
        }
        mma(acc[2 * pair], weight, value.x, value.y, T{});
        mma(acc[2 * pair], rest, value.x, value.y, T{});
        mma(acc[2 * pair + 1], weight, value.z, value.w, T{});
        mma(acc[2 * pair + 1], rest, value.z, value.w, T{});
      }
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const ChunkRow& row = rows[r];
    float sum = row.sum;
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (row.end == 0) continue;
    float* const out = args.out.row(row.t) + uint64_t{row.head} * D + lane % 4 * 2;
    const float* const gates = args.q.row(row.t) + (2 * uint64_t{row.head} + 1) * D + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float value = acc[i][2 * r + e] / sum;
        if (args.gated) value *= 1.0f / (1.0f + expf(-gates[i * 8 + e]));
        out[i * 8 + e] = value;
      }
    }
  }
}

}  // namespace godwit::cuda
