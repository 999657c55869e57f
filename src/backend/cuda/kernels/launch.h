// What host code sees of the kernels: one function per launch, which enqueues and does not wait.
// Arguments are plain data; every pointer is device memory. The kernels' contracts stand in the
// .cuh of the same name.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/choices.h"
#include "backend/cuda/views.h"
#include "program/step.h"

namespace godwit::cuda {

struct Queue {
  cudaStream_t stream = nullptr;
  Overlap overlap = Overlap::kNone;
};

// Whether this build has code for the current card.
[[nodiscard]] cudaError_t find_code();

// Reads memory by 16-byte loads, all of the card at once; `sink` keeps the loads alive.
[[nodiscard]] cudaError_t enqueue_read(cudaStream_t stream, const std::byte* data, uint64_t bytes,
                                       uint32_t* sink);

// Fills a table from frequencies [n_rot / 2], on the default stream.
[[nodiscard]] cudaError_t enqueue_rope_table(const double* frequencies, double magnitude,
                                             uint64_t n_positions, const RopeTable& table);

// out[t] = scale * table[token of row t]
struct EmbedArgs {
  DeviceMatrix table;
  const RowInput* inputs = nullptr;  // [n_rows]
  float scale = 1.0f;
  BufferView out;
  uint32_t n_rows = 0;
};
[[nodiscard]] cudaError_t enqueue_embed(const Queue& queue, const EmbedArgs& args);

// What becomes of the products y[t, r] of a matrix and a row of activations (with its bias):
enum class Finish : uint8_t {
  kStore,  // out = softcapped(scale * y)
  kAdd,    // out += scale * y
  kGated,  // out = activation(y of targets[0]) * (y of targets[1]), into targets[1].out
};

struct Product {
  DeviceMatrix weight;
  const float* bias = nullptr;  // [rows], or none
  BufferView out;               // from the first row of the launch
};

inline constexpr uint32_t kMaxProducts = 4;

// n_rows <= kGroupRows rows of activations, normed on the way in, times matrices of one type.
struct MatVecArgs {
  BufferView x;                      // from the first row of the launch
  const uint32_t* picked = nullptr;  // rows of x to take, [n_rows]; none: 0, 1, ...
  uint32_t n_rows = 1;
  const float* norm = nullptr;  // RMS norm's weights [cols], or none
  float epsilon = 0.0f;
  Product products[kMaxProducts] = {};
  uint32_t n_products = 1;
  Finish finish = Finish::kStore;
  float scale = 1.0f;
  float softcap = 0.0f;  // 0: none
  program::Activation activation = program::Activation::kSilu;
  int n_multiprocessors = 1;
};
// Bytes of shared memory that rows of so many columns take at least.
[[nodiscard]] constexpr uint64_t matvec_shared_bytes(uint64_t cols, uint32_t n_rows) {
  return n_rows * padded(cols) * sizeof(float);
}
[[nodiscard]] cudaError_t enqueue_matvec(const Queue& queue, const MatVecArgs& args,
                                         int max_shared_bytes);

// Products that lie in memory: y[t, r] times row_scales[t] plus bias, then as Finish says, with
// `gate`, whose bias is in it already, in the place of targets[0]. norm: y is normed first.
struct FinishArgs {
  BufferView y;  // may be out
  BufferView gate;
  const float* row_scales = nullptr;  // [n_rows], or none
  const float* bias = nullptr;        // [width], or none
  const float* norm = nullptr;        // [width], or none
  float epsilon = 0.0f;
  Finish finish = Finish::kStore;
  float scale = 1.0f;
  program::Activation activation = program::Activation::kSilu;
  BufferView out;
  uint32_t n_rows = 0;
};
[[nodiscard]] cudaError_t enqueue_finish(const Queue& queue, const FinishArgs& args);

inline constexpr uint32_t kMaxHeadDim = 256;

// Attention of n_rows rows at consecutive positions, in three launches.
struct AttendArgs {
  BufferView q;  // from the first row of the launch, as program::Attend has them
  BufferView k;
  BufferView v;
  BufferView out;
  const RowInput* inputs = nullptr;  // [n_rows]
  KvCache kv;
  RopeTable rope;
  program::RopePairs pairs = program::RopePairs::kAdjacent;
  uint32_t n_rows = 1;
  uint32_t n_heads = 0;
  float scale = 0.0f;
  const float* q_norm = nullptr;  // [q_norm_span], or none
  uint32_t q_norm_span = 0;       // values normed together: head_dim, or a multiple
  float q_epsilon = 0.0f;
  const float* k_norm = nullptr;
  uint32_t k_norm_span = 0;
  float k_epsilon = 0.0f;
  double position_beta = 0.0;    // program::PositionScale
  uint64_t position_length = 0;  // 0: none
  float softcap = 0.0f;
  uint64_t window = 0;
  bool gated = false;
  uint64_t n_positions = 0;  // that the last row may see; the launch is made for so many
  Scratch scratch;           // turned_q from the first row of the launch
};
// Norm, RoPE and scale of the queries into scratch.turned_q; norm and RoPE of the keys, and the
// values, into the cache.
[[nodiscard]] cudaError_t enqueue_append(const Queue& queue, const AttendArgs& args);
// Partial results of splits of kSplitPositions into scratch; n_rows <= kGroupRows.
[[nodiscard]] cudaError_t enqueue_attend_splits(const Queue& queue, const AttendArgs& args);
// Their merge into out.
[[nodiscard]] cudaError_t enqueue_attend_merge(const Queue& queue, const AttendArgs& args);

// Both of these at once for any number of rows, where can_attend_chunk() says so.
[[nodiscard]] bool can_attend_chunk(const KvLayout& layout);
[[nodiscard]] cudaError_t enqueue_attend_chunk(const Queue& queue, const AttendArgs& args);

// Rows of activations, normed or not, for a matrix product: as 16-bit high and low parts divided
// by a power of two per row (type kF16; 1 for kBF16), or as F32 into `out`.
struct SplitArgs {
  BufferView x;
  const float* norm = nullptr;
  float epsilon = 0.0f;
  TensorType type = TensorType::kBF16;
  uint16_t* high = nullptr;  // [n_rows, stride]
  uint16_t* low = nullptr;
  float* row_scales = nullptr;
  float* out = nullptr;  // [n_rows, stride]
  uint64_t stride = 0;
  uint64_t n_columns = 0;  // to write: x's width, then zeros
  uint32_t n_rows = 0;
};
[[nodiscard]] cudaError_t enqueue_split(const Queue& queue, const SplitArgs& args);

// Positions [begin, begin + n) of one layer to or from rows of the canonical layout, of which the
// layer's part begins at `rows`, `row_bytes` apart.
enum class StateWay : uint8_t { kOut, kIn };
struct StateArgs {
  KvCache kv;
  std::byte* rows = nullptr;
  uint64_t row_bytes = 0;
  uint64_t begin = 0;
  uint64_t n = 0;
  StateWay way = StateWay::kOut;
};
[[nodiscard]] cudaError_t enqueue_state(cudaStream_t stream, const StateArgs& args);

}  // namespace godwit::cuda
