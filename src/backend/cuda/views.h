// What kernels are given: plain pointers into device memory with their shapes. Owned by
// DeviceWeights and Context. Device code includes this and no header that formats text.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kv_layout.h"
#include "base/host_device.h"
#include "base/tensor_type.h"

namespace godwit::cuda {

// Rows of weights and activations are padded with zeros to whole groups of so many elements, so
// that kernels load 16 bytes without asking.
inline constexpr uint64_t kColumnStep = 32;

[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t padded(uint64_t cols) {
  return (cols + kColumnStep - 1) / kColumnStep * kColumnStep;
}

// Rows that the stepwise executor runs at once.
inline constexpr size_t kGroupRows = 4;
// Attention splits at absolute multiples of so many positions.
inline constexpr uint64_t kSplitPositions = 256;

struct DeviceMatrix {
  const std::byte* data = nullptr;     // [rows, stride]
  TensorType type = TensorType::kF32;  // kF32, kF16 or kBF16
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint64_t stride = 0;  // elements from row to row, padded(cols)
};

// What kernels read of a row, so that a captured graph serves every token.
struct RowInput {
  int32_t token = 0;
  int32_t position = 0;
  int32_t logit_row = -1;  // its place among the rows that want logits; -1: wants none
  int32_t unused = 0;
};

// [rows, width] f32, rows `stride` floats apart; the padding holds zeros.
struct BufferView {
  float* data = nullptr;
  uint64_t width = 0;
  uint64_t stride = 0;

  [[nodiscard]] GODWIT_HOST_DEVICE float* row(size_t i) const { return data + i * stride; }
};

struct KvCache {
  std::byte* data = nullptr;
  KvLayout layout;
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
};

// Angles of every position the context holds, made once in double: (cos, sin) * magnitude.
struct RopeTable {
  const float2* data = nullptr;  // [n_positions, n_rot / 2]
  uint32_t n_rot = 0;
};

// Areas that live for a step.
struct Scratch {
  float* turned_q = nullptr;      // [max_rows, widest]: queries after norm, RoPE and scale
  float* wide = nullptr;          // [max_rows, widest]: gates, projections to be added
  float* split_values = nullptr;  // [kGroupRows, n_heads, n_splits, head_dim]
  float2* split_sums = nullptr;   // [kGroupRows, n_heads, n_splits]: maximum, sum
  uint16_t* high = nullptr;       // [max_rows, widest]: activations in 16 bits,
  uint16_t* low = nullptr;        // likewise: and what they leave over
  float* row_scales = nullptr;    // [max_rows]: what high and low were divided by
  uint64_t widest = 0;            // floats, padded
  uint64_t n_splits = 0;          // of the capacity
};

}  // namespace godwit::cuda
