// The second and third launch of Attend: attention of a row over its history, cut at absolute
// multiples of kSplitPositions, and the merge of the cuts.
//   split s: m = max of its scores, l = sum exp(score - m), values = sum exp(score - m) v
//   out = sum over splits exp(m_s - M) values_s / sum exp(m_s - M) l_s
//
// Shapes: scratch.turned_q [n_rows, widest], already scaled; scratch.split_values, split_sums.
// Preconditions: head_dim <= kMaxHeadDim; the row's own K and V are in the cache.
// Bytes: K and V of the positions seen, once per KV head and kQueryHeads query heads that share it.
// Work split: a block is (split, KV head and up to kQueryHeads of its query heads, row): 8 warps,
//   a tile of 32 positions each. attend_operand_split reads the cache in operand order by 16-byte
//   loads, so a lane holds a quarter of the dims of one position (K), or a quarter of the positions
//   of one dim (V); attend_any_split takes any layout and type, a lane a position, then a dim.
// Arithmetic: bounded; fp32 fma, fixed trees, warps and splits merged in order. What lies beyond
//   the row's position is never multiplied, whatever it holds.
// Synchronisation: after wait_for_inputs().
// Reference: reference::attend_head.
// Tried: asking for the first values together with the keys (32 registers, a block less per SM),
//   719 instead of 657 us for 16 layers at 32,768 positions of Llama-1B's shape on an H200.
#pragma once

#include <cfloat>

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

inline constexpr uint32_t kQueryHeads = 4;
inline constexpr uint32_t kAttendWarps = kSplitPositions / kTilePositions;

// Positions [begin, end) that a row sees, and the first split of them.
struct Sight {
  uint64_t begin = 0;
  uint64_t end = 0;

  __device__ uint64_t first_split() const { return begin / kSplitPositions; }
  __device__ uint64_t n_splits() const {
    return (end + kSplitPositions - 1) / kSplitPositions - first_split();
  }
};
__device__ __forceinline__ Sight sight_of(const AttendArgs& args, uint32_t t) {
  const uint64_t end = static_cast<uint64_t>(args.inputs[t].position) + 1;
  return {args.window != 0 && end > args.window ? end - args.window : 0, end};
}

// Which heads a block works on.
struct Heads {
  uint32_t kv = 0;
  uint32_t first = 0;  // query head
  uint32_t n = 0;
};
__device__ __forceinline__ Heads heads_of(const AttendArgs& args) {
  const uint32_t group = args.n_heads / args.kv.layout.n_kv_heads;
  const uint32_t chunks = (group + kQueryHeads - 1) / kQueryHeads;
  const uint32_t kv = blockIdx.y / chunks;
  const uint32_t first = blockIdx.y % chunks * kQueryHeads;
  return {kv, kv * group + first, min(kQueryHeads, group - first)};
}

__device__ __forceinline__ uint64_t split_slot(const AttendArgs& args, uint32_t t, uint32_t head,
                                               uint64_t split) {
  return (uint64_t{t} * args.n_heads + head) * args.scratch.n_splits + split;
}

// What a warp leaves of its tile for its block.
struct WarpPart {
  float highest[kAttendWarps][kQueryHeads];
  float sum[kAttendWarps][kQueryHeads];
};

// Merges the block's warps, values [kAttendWarps][kQueryHeads][head_dim], into the split's slot.
__device__ __forceinline__ void merge_warps(const AttendArgs& args, const Heads& heads, uint32_t t,
                                            uint64_t split, const WarpPart& part,
                                            const float* values) {
  const uint32_t dim = args.kv.layout.head_dim;
  for (uint32_t i = threadIdx.x; i < heads.n * dim; i += blockDim.x) {
    const uint32_t g = i / dim;
    const uint32_t d = i % dim;
    float highest = -FLT_MAX;
#pragma unroll
    for (uint32_t w = 0; w < kAttendWarps; ++w) highest = fmaxf(highest, part.highest[w][g]);
    float sum = 0.0f;
    float value = 0.0f;
#pragma unroll
    for (uint32_t w = 0; w < kAttendWarps; ++w) {
      const float f = expf(part.highest[w][g] - highest);
      sum = fmaf(f, part.sum[w][g], sum);
      value = fmaf(f, values[(w * kQueryHeads + g) * dim + d], value);
    }
    const uint64_t slot = split_slot(args, t, heads.first + g, split);
    args.scratch.split_values[slot * dim + d] = value;
    if (d == 0) args.scratch.split_sums[slot] = make_float2(highest, sum);
  }
}

// The scores of a tile in lanes: turns them into weights in `weights` [kQueryHeads][32] of this
// warp and notes maximum and sum. `score[g]` belongs to the tile's position `at`.
__device__ __forceinline__ void weigh(const float (&score)[kQueryHeads], uint32_t n_heads,
                                      uint32_t at, uint32_t warp, float* weights, WarpPart& part) {
#pragma unroll
  for (uint32_t g = 0; g < kQueryHeads; ++g) {
    if (g >= n_heads) continue;
    const float highest = warp_max(score[g]);
    // A tile beyond the row's sight has no score at all: -FLT_MAX marks it, its weights are 0.
    const float weight = score[g] == -FLT_MAX ? 0.0f : expf(score[g] - highest);
    const float sum = warp_sum(weight);
    weights[g * kTilePositions + at] = weight;
    if (threadIdx.x % 32 == 0) {
      part.highest[warp][g] = highest;
      part.sum[warp][g] = sum;
    }
  }
  __syncwarp();
}

template <class T, int D>
__global__ void __launch_bounds__(kAttendWarps * 32)
    attend_operand_split(const __grid_constant__ AttendArgs args) {
  // Queries as lanes want them: [g][dim / 32][lane % 4][8 dims].
  __shared__ __align__(16) float queries[kQueryHeads * D];
  __shared__ float weights[kAttendWarps][kQueryHeads * kTilePositions];
  __shared__ WarpPart part;
  extern __shared__ __align__(16) float values[];  // [kAttendWarps][kQueryHeads][D]
  const uint32_t t = blockIdx.z;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t quarter = lane % 4;
  const uint32_t eighth = lane / 4;
  const Heads heads = heads_of(args);
  let_next_begin();
  wait_for_inputs();
  const Sight sight = sight_of(args, t);
  const uint64_t split = sight.first_split() + blockIdx.x;
  if (blockIdx.x >= sight.n_splits()) return;

  for (uint32_t i = threadIdx.x; i < heads.n * D; i += blockDim.x) {
    const uint32_t d = i % D;
    const uint32_t place = d / 32 * 32 + d % 8 / 2 * 8 + d % 32 / 8 * 2 + d % 2;
    queries[i / D * D + place] =
        args.scratch.turned_q[t * args.scratch.widest + uint64_t{heads.first} * D + i];
  }
  __syncthreads();

  const uint64_t tile = split * kAttendWarps + warp;
  const uint64_t tile_begin = tile * kTilePositions;
  const auto* const k =
      reinterpret_cast<const uint4*>(args.kv.data + heads.kv * args.kv.layout.head_bytes()) +
      tile * (D * kTilePositions * 2 / 8) + lane;
  const uint4* const v = k + D * kTilePositions / 8;
  const bool seen = tile_begin < sight.end && tile_begin + kTilePositions > sight.begin;

  float acc[kQueryHeads][D / 8] = {};
  float score[kQueryHeads];
#pragma unroll
  for (uint32_t g = 0; g < kQueryHeads; ++g) score[g] = -FLT_MAX;
  if (seen) {
    float sums[kQueryHeads][4] = {};
#pragma unroll
    for (int pair = 0; pair < D / 32; ++pair) {
      float key[4][8];
#pragma unroll
      for (int p8 = 0; p8 < 4; ++p8) {
        unpack(load_once(k + (p8 * (D / 32) + pair) * 32), key[p8], T{});
      }
#pragma unroll
      for (uint32_t g = 0; g < kQueryHeads; ++g) {
        if (g >= heads.n) continue;
        const auto* const q =
            reinterpret_cast<const float4*>(queries + g * D + pair * 32 + quarter * 8);
        const float4 q0 = q[0];
        const float4 q1 = q[1];
#pragma unroll
        for (int p8 = 0; p8 < 4; ++p8) {
          float s = sums[g][p8];
          s = fmaf(q0.x, key[p8][0], s);
          s = fmaf(q0.y, key[p8][1], s);
          s = fmaf(q0.z, key[p8][2], s);
          s = fmaf(q0.w, key[p8][3], s);
          s = fmaf(q1.x, key[p8][4], s);
          s = fmaf(q1.y, key[p8][5], s);
          s = fmaf(q1.z, key[p8][6], s);
          sums[g][p8] = fmaf(q1.w, key[p8][7], s);
        }
      }
    }
    const uint64_t position = tile_begin + quarter * 8 + eighth;
    const bool visible = position >= sight.begin && position < sight.end;
#pragma unroll
    for (uint32_t g = 0; g < kQueryHeads; ++g) {
      if (g >= heads.n) continue;
      float own = 0.0f;
#pragma unroll
      for (uint32_t p8 = 0; p8 < 4; ++p8) {
        float s = sums[g][p8];
        s += __shfl_xor_sync(0xffffffffu, s, 1);
        s += __shfl_xor_sync(0xffffffffu, s, 2);
        own = p8 == quarter ? s : own;
      }
      score[g] = visible ? softcapped(own, args.softcap) : -FLT_MAX;
    }
  }
  weigh(score, heads.n, quarter * 8 + eighth, warp, weights[warp], part);

  if (seen) {
    const bool whole = tile_begin >= sight.begin && tile_begin + kTilePositions <= sight.end;
#pragma unroll
    for (int p16 = 0; p16 < 2; ++p16) {
      float weight[kQueryHeads][4];
      bool visible[4];
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t at = p16 * 16 + e / 2 * 8 + quarter * 2 + e % 2;
        visible[e] = tile_begin + at >= sight.begin && tile_begin + at < sight.end;
#pragma unroll
        for (uint32_t g = 0; g < kQueryHeads; ++g) {
          weight[g][e] = g < heads.n ? weights[warp][g * kTilePositions + at] : 0.0f;
        }
      }
#pragma unroll
      for (int pair = 0; pair < D / 16; ++pair) {
        float value[8];
        unpack(load_once(v + (p16 * (D / 16) + pair) * 32), value, T{});
        if (!whole) {
#pragma unroll
          for (int e = 0; e < 8; ++e) value[e] = visible[e % 4] ? value[e] : 0.0f;
        }
#pragma unroll
        for (uint32_t g = 0; g < kQueryHeads; ++g) {
          if (g >= heads.n) continue;
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            acc[g][2 * pair] = fmaf(weight[g][e], value[e], acc[g][2 * pair]);
            acc[g][2 * pair + 1] = fmaf(weight[g][e], value[4 + e], acc[g][2 * pair + 1]);
          }
        }
      }
    }
  }
#pragma unroll
  for (uint32_t g = 0; g < kQueryHeads; ++g) {
    if (g >= heads.n) continue;
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
      float a = acc[g][i];
      a += __shfl_xor_sync(0xffffffffu, a, 1);
      a += __shfl_xor_sync(0xffffffffu, a, 2);
      if (quarter == 0) values[(warp * kQueryHeads + g) * D + i * 8 + eighth] = a;
    }
  }
  __syncthreads();
  merge_warps(args, heads, t, split, part, values);
}

__global__ void __launch_bounds__(kAttendWarps * 32)
    attend_any_split(const __grid_constant__ AttendArgs args) {
  __shared__ float weights[kAttendWarps][kQueryHeads * kTilePositions];
  __shared__ WarpPart part;
  extern __shared__ __align__(16) float values[];  // [kAttendWarps][kQueryHeads][head_dim]
  const uint32_t t = blockIdx.z;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t lane = threadIdx.x % 32;
  const KvLayout& layout = args.kv.layout;
  const uint32_t dim = layout.head_dim;
  const Heads heads = heads_of(args);
  let_next_begin();
  wait_for_inputs();
  const Sight sight = sight_of(args, t);
  const uint64_t split = sight.first_split() + blockIdx.x;
  if (blockIdx.x >= sight.n_splits()) return;

  const float* const q =
      args.scratch.turned_q + t * args.scratch.widest + uint64_t{heads.first} * dim;
  const uint64_t tile_begin = (split * kAttendWarps + warp) * kTilePositions;
  const uint64_t position = tile_begin + lane;
  float score[kQueryHeads];
#pragma unroll
  for (uint32_t g = 0; g < kQueryHeads; ++g) score[g] = -FLT_MAX;
  if (position >= sight.begin && position < sight.end) {
    float sums[kQueryHeads] = {};
    for (uint32_t d = 0; d < dim; ++d) {
      const float key =
          load_as_float(args.kv.data + layout.k_index(heads.kv, position, d), args.kv.k_type);
#pragma unroll
      for (uint32_t g = 0; g < kQueryHeads; ++g) {
        if (g < heads.n) sums[g] = fmaf(q[g * dim + d], key, sums[g]);
      }
    }
#pragma unroll
    for (uint32_t g = 0; g < kQueryHeads; ++g) score[g] = softcapped(sums[g], args.softcap);
  }
  weigh(score, heads.n, lane, warp, weights[warp], part);

  const uint64_t first = max(tile_begin, sight.begin);
  const uint64_t last = min(tile_begin + kTilePositions, sight.end);
  for (uint32_t d = lane; d < dim; d += 32) {
    float acc[kQueryHeads] = {};
    for (uint64_t p = first; p < last; ++p) {
      const float value =
          load_as_float(args.kv.data + layout.v_index(heads.kv, p, d), args.kv.v_type);
#pragma unroll
      for (uint32_t g = 0; g < kQueryHeads; ++g) {
        if (g >= heads.n) continue;
        acc[g] = fmaf(weights[warp][g * kTilePositions + (p - tile_begin)], value, acc[g]);
      }
    }
#pragma unroll
    for (uint32_t g = 0; g < kQueryHeads; ++g) {
      if (g < heads.n) values[(warp * kQueryHeads + g) * dim + d] = acc[g];
    }
  }
  __syncthreads();
  merge_warps(args, heads, t, split, part, values);
}

inline constexpr int kMergeWarps = 8;

// One block per head and row: factors of the splits into shared memory, then every warp adds up
// every eighth split, in order; the warps' sums are added in order.
__global__ void __launch_bounds__(kMergeWarps * 32)
    attend_merge(const __grid_constant__ AttendArgs args) {
  extern __shared__ float factors[];  // [n_splits], then [kMergeWarps][head_dim]
  __shared__ float area[kMergeWarps];
  const uint32_t head = blockIdx.x;
  const uint32_t t = blockIdx.y;
  const uint32_t dim = args.kv.layout.head_dim;
  let_next_begin();
  wait_for_inputs();
  const Sight sight = sight_of(args, t);
  const uint64_t first = sight.first_split();
  const auto n = static_cast<uint32_t>(sight.n_splits());
  const float2* const sums = args.scratch.split_sums + split_slot(args, t, head, first);
  const float* const values = args.scratch.split_values + split_slot(args, t, head, first) * dim;

  float highest = -FLT_MAX;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) highest = fmaxf(highest, sums[i].x);
  highest = block_max<kMergeWarps>(highest, area);
  float sum = 0.0f;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float f = expf(sums[i].x - highest);
    factors[i] = f;
    sum = fmaf(f, sums[i].y, sum);
  }
  sum = block_sum<kMergeWarps>(sum, area);

  float* const parts = factors + n;
  const uint32_t warp = threadIdx.x / 32;
  for (uint32_t d = threadIdx.x % 32; d < dim; d += 32) {
    float acc = 0.0f;
#pragma unroll 8
    for (uint32_t i = warp; i < n; i += kMergeWarps) {
      acc = fmaf(factors[i], values[uint64_t{i} * dim + d], acc);
    }
    parts[warp * dim + d] = acc;
  }
  __syncthreads();
  for (uint32_t d = threadIdx.x; d < dim; d += blockDim.x) {
    float value = 0.0f;
#pragma unroll
    for (int w = 0; w < kMergeWarps; ++w) value += parts[w * dim + d];
    value /= sum;
    if (args.gated) {
      const float gate = args.q.row(t)[(2 * uint64_t{head} + 1) * dim + d];
      value *= 1.0f / (1.0f + expf(-gate));
    }
    args.out.row(t)[uint64_t{head} * dim + d] = value;
  }
}

}  // namespace godwit::cuda
