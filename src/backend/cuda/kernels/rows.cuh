// Row by row: embedding, what becomes of products in memory (launch.h: FinishArgs), activations as
// operands of a matrix product, state rows. One block per row; bytes and time are small beside the
// products'. Arithmetic: bounded; fp32, fixed trees. Reference: the functions of reference/steps.h.
#pragma once

#include <cfloat>

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

inline constexpr int kRowWarps = 8;

__global__ void __launch_bounds__(kRowWarps * 32) embed(const __grid_constant__ EmbedArgs args) {
  const uint32_t t = blockIdx.x;
  let_next_begin();
  wait_for_inputs();
  const auto token = static_cast<uint64_t>(args.inputs[t].token);
  const uint64_t word = args.table.type == TensorType::kF32 ? 4 : 2;
  const std::byte* const row = args.table.data + token * args.table.stride * word;
  for (uint64_t i = threadIdx.x; i < args.table.cols; i += blockDim.x) {
    args.out.row(t)[i] = args.scale * load_as_float(row + i * word, args.table.type);
  }
}

// Squares of a row over its width, in every thread.
__device__ __forceinline__ float norm_factor(const float* x, uint64_t width, float epsilon,
                                             float* area) {
  float squares = 0.0f;
  for (uint64_t i = threadIdx.x; i < width; i += blockDim.x) squares = fmaf(x[i], x[i], squares);
  const float mean = block_sum<kRowWarps>(squares, area) / static_cast<float>(width);
  return 1.0f / sqrtf(mean + epsilon);
}

__global__ void __launch_bounds__(kRowWarps * 32)
    finish_rows(const __grid_constant__ FinishArgs args) {
  __shared__ float area[kRowWarps];
  const uint32_t t = blockIdx.x;
  let_next_begin();
  wait_for_inputs();
  float* const y = args.y.row(t);
  const uint64_t width = args.out.width;
  const float row_scale = args.row_scales == nullptr ? 1.0f : args.row_scales[t];
  if (args.norm != nullptr) {
    // The norm needs whole sums.
    for (uint64_t i = threadIdx.x; i < width; i += blockDim.x) {
      y[i] = fmaf(y[i], row_scale, args.bias == nullptr ? 0.0f : args.bias[i]);
    }
    __syncthreads();
  }
  const float factor = args.norm == nullptr ? 1.0f : norm_factor(y, width, args.epsilon, area);
  for (uint64_t i = threadIdx.x; i < width; i += blockDim.x) {
    float value = y[i];
    if (args.norm != nullptr) {
      value = value * factor * args.norm[i];
    } else {
      value = fmaf(value, row_scale, args.bias == nullptr ? 0.0f : args.bias[i]);
    }
    float* const out = args.out.row(t) + i;
    if (args.finish == Finish::kGated) {
      float gate = fmaf(args.gate.row(t)[i], row_scale, 0.0f);
      gate = args.activation == program::Activation::kSilu ? silu(gate) : gelu(gate);
      *out = gate * value;
    } else if (args.finish == Finish::kAdd) {
      *out = fmaf(args.scale, value, *out);
    } else {
      *out = args.scale * value;
    }
  }
}

// high + low = x / scale to about 16 bits (bf16) or 22 (f16); scale is 1, or for f16 the power of
// two that brings the row's largest value into [1, 2).
__global__ void __launch_bounds__(kRowWarps * 32)
    split_rows(const __grid_constant__ SplitArgs args) {
  __shared__ float area[kRowWarps];
  const uint32_t t = blockIdx.x;
  let_next_begin();
  wait_for_inputs();
  const float* const x = args.x.row(t);
  const uint64_t width = args.x.width;
  const float factor = args.norm == nullptr ? 1.0f : norm_factor(x, width, args.epsilon, area);
  const auto value_at = [&](uint64_t i) {
    if (i >= width) return 0.0f;
    return args.norm == nullptr ? x[i] : x[i] * factor * args.norm[i];
  };
  const uint64_t end = args.n_columns;
  if (args.type == TensorType::kF32) {
    for (uint64_t i = threadIdx.x; i < end; i += blockDim.x) {
      args.out[t * args.stride + i] = value_at(i);
    }
    return;
  }
  uint16_t* const high = args.high + t * args.stride;
  uint16_t* const low = args.low + t * args.stride;
  if (args.type == TensorType::kBF16) {
    for (uint64_t i = threadIdx.x; i < end; i += blockDim.x) {
      const float value = value_at(i);
      const __nv_bfloat16 h = __float2bfloat16_rn(value);
      high[i] = __bfloat16_as_ushort(h);
      low[i] = __bfloat16_as_ushort(__float2bfloat16_rn(value - __bfloat162float(h)));
    }
    if (threadIdx.x == 0) args.row_scales[t] = 1.0f;
    return;
  }
  float highest = 0.0f;
  for (uint64_t i = threadIdx.x; i < width; i += blockDim.x) {
    highest = fmaxf(highest, fabsf(value_at(i)));
  }
  highest = block_max<kRowWarps>(highest, area);
  const int exponent = highest > FLT_MIN ? max(-120, min(120, ilogbf(highest))) : 0;
  for (uint64_t i = threadIdx.x; i < end; i += blockDim.x) {
    const float value = ldexpf(value_at(i), -exponent);
    const __half h = __float2half_rn(value);
    high[i] = __half_as_ushort(h);
    low[i] = __half_as_ushort(__float2half_rn(value - __half2float(h)));
  }
  if (threadIdx.x == 0) args.row_scales[t] = ldexpf(1.0f, exponent);
}

template <class Word>
__device__ __forceinline__ void move_word(std::byte* cache, std::byte* row, StateWay way) {
  if (way == StateWay::kOut) {
    *reinterpret_cast<Word*>(row) = *reinterpret_cast<const Word*>(cache);
  } else {
    *reinterpret_cast<Word*>(cache) = *reinterpret_cast<const Word*>(row);
  }
}

// One block per position: K of all heads, then V (backend/state.h).
__global__ void __launch_bounds__(kRowWarps * 32)
    move_state(const __grid_constant__ StateArgs args) {
  const KvLayout& layout = args.kv.layout;
  const uint32_t n = layout.n_kv_heads * layout.head_dim;
  const uint64_t position = args.begin + blockIdx.x;
  std::byte* const row = args.rows + blockIdx.x * args.row_bytes;
  for (uint32_t i = threadIdx.x; i < 2 * n; i += blockDim.x) {
    const bool is_k = i < n;
    const uint32_t head = i % n / layout.head_dim;
    const uint32_t dim = i % n % layout.head_dim;
    const uint32_t bytes = is_k ? layout.k_bytes : layout.v_bytes;
    std::byte* const cache = args.kv.data + (is_k ? layout.k_index(head, position, dim)
                                                  : layout.v_index(head, position, dim));
    std::byte* const at =
        row + (is_k ? uint64_t{i} * bytes : uint64_t{n} * layout.k_bytes + uint64_t{i - n} * bytes);
    if (bytes == 4) {
      move_word<uint32_t>(cache, at, args.way);
    } else {
      move_word<uint16_t>(cache, at, args.way);
    }
  }
}

}  // namespace godwit::cuda
