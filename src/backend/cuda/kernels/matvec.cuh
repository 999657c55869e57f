// y[t, r] = sum over c of W[r, c] * n[t, c], n the (normed) activations; then Finish (launch.h).
//
// Shapes: W [rows, stride] of W's type, up to kMaxProducts of them over the same columns; x
//   [n_rows, stride] f32, padded with zeros; norm [stride] f32.
// Preconditions: stride a multiple of kColumnStep; n_rows <= R; R * stride floats of shared memory.
// Bytes: rows * stride * sizeof(W), once for all R rows; floor = that over the read bandwidth.
// Work split: blocks of 8 warps walk over pairs of weight rows, a warp a pair (the same row of gate
//   and up for kGated) or both halves of one row, a lane every 32nd 16-byte load. Four loads of
//   each are in flight always: a register is asked for again as soon as it is used, across the ends
//   of pairs. Each block brings x in and norms it for itself: a few kilobytes from L2.
// Arithmetic: bounded; fp32, one fma per weight in column order per lane, then a fixed tree. The
//   same for R = 1 and R = kGroupRows, so a row's bits do not depend on its company.
// Synchronisation: the first weights are asked for before wait_for_inputs().
// Reference: reference::mat_mul, reference::rms_norm.
// Tried, one token of Llama-1B's shape in BF16 at 2,048 positions on an H200, 1,209 us as it is:
//   two blocks per SM 1,308; eight loads in flight and two blocks 1,263; one block 1,788.
#pragma once

#include "backend/cuda/kernels/device_math.cuh"
#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {

inline constexpr int kMatVecWarps = 8;
inline constexpr int kMatVecUnroll = 4;

// What a warp's pair is: two rows of weights, or both halves of one row, so that small matrices
// keep all warps of the card busy.
enum class Cut : uint8_t { kRows, kHalves };

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

// One 16-byte load of each row of a pair against all R rows of activations; that of b `shift` loads
// further.
template <class W, int R, Cut cut>
__device__ __forceinline__ void accumulate(uint4 va, uint4 vb, const float* rows, uint32_t stride,
                                           uint32_t load, uint32_t shift, float (&sums)[2][R]) {
  constexpr int kPer = kPerLoad<W>;
  float fa[kPer];
  float fb[kPer];
  unpack(va, fa, W{});
  unpack(vb, fb, W{});
#pragma unroll
  for (int t = 0; t < R; ++t) {
#pragma unroll
    for (int h = 0; h < kPer / 4; ++h) {
      const float* const at = rows + t * stride + h * (stride / 2) + load * 4;
      const float4 x = *reinterpret_cast<const float4*>(at);
      const float4 z = cut == Cut::kHalves ? *reinterpret_cast<const float4*>(at + shift * 4) : x;
      sums[0][t] = fmaf(fa[4 * h], x.x, sums[0][t]);
      sums[1][t] = fmaf(fb[4 * h], z.x, sums[1][t]);
      sums[0][t] = fmaf(fa[4 * h + 1], x.y, sums[0][t]);
      sums[1][t] = fmaf(fb[4 * h + 1], z.y, sums[1][t]);
      sums[0][t] = fmaf(fa[4 * h + 2], x.z, sums[0][t]);
      sums[1][t] = fmaf(fb[4 * h + 2], z.z, sums[1][t]);
      sums[0][t] = fmaf(fa[4 * h + 3], x.w, sums[0][t]);
      sums[1][t] = fmaf(fb[4 * h + 3], z.w, sums[1][t]);
    }
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

// Pairs of a matrix of so many rows.
template <Cut cut>
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t pairs_of(uint64_t rows) {
  return cut == Cut::kHalves ? rows : (rows + 1) / 2;
}

template <Cut cut>
__device__ __forceinline__ RowPair find_pair(const MatVecArgs& args, uint64_t pair) {
  if (args.finish == Finish::kGated) {
    return {&args.products[0], &args.products[1], pair, pair, true};
  }
  uint32_t i = 0;
  while (pair >= pairs_of<cut>(args.products[i].weight.rows)) {
    pair -= pairs_of<cut>(args.products[i].weight.rows);
    ++i;
  }
  const Product* const product = &args.products[i];
  if (cut == Cut::kHalves) return {product, product, pair, pair, false};
  const bool both = 2 * pair + 1 < product->weight.rows;
  return {product, product, 2 * pair, both ? 2 * pair + 1 : 2 * pair, both};
}

template <Cut cut>
__device__ __forceinline__ void finish_pair(const MatVecArgs& args, const RowPair& p, uint32_t t,
                                            float a, float b) {
  if (cut == Cut::kHalves) a += b;
  if (args.finish != Finish::kGated) {
    finish_one(args, *p.first, t, p.a, a);
    if (p.both) finish_one(args, *p.second, t, p.b, b);
    return;
  }
  if (p.first->bias != nullptr) a += p.first->bias[p.a];
  if (p.second->bias != nullptr) b += p.second->bias[p.b];
  const float gate = args.activation == program::Activation::kSilu ? silu(a) : gelu(a);
  p.second->out.row(t)[p.b] = gate * b;
}

// A warp's walk: pair after pair, each in chunks of kMatVecUnroll loads per lane and row.
template <class W, Cut cut>
class Walk {
 public:
  __device__ Walk(const MatVecArgs& args, uint64_t n_pairs)
      : args_(args),
        n_pairs_(n_pairs),
        pair_(uint64_t{blockIdx.x} * kMatVecWarps + threadIdx.x / 32),
        n_loads_(static_cast<uint32_t>(args.products[0].weight.stride) / kPerLoad<W> / kParts),
        load_(threadIdx.x % 32) {
    if (there()) open();
  }

  __device__ bool there() const { return pair_ < n_pairs_; }
  __device__ const RowPair& pair() const { return rows_; }
  __device__ uint32_t n_loads() const { return n_loads_; }
  // Of the i-th load of the chunk.
  __device__ uint32_t load(int i) const { return load_ + 32 * i; }
  __device__ bool within(int i) const { return load(i) < n_loads_; }
  __device__ uint4 first(int i) const { return within(i) ? load_once(a_ + load(i)) : uint4{}; }
  __device__ uint4 second(int i) const { return within(i) ? load_once(b_ + load(i)) : uint4{}; }
  // Whether the chunk is its pair's last: the same for all lanes.
  __device__ bool last() const { return load_ - threadIdx.x % 32 + kStep >= n_loads_; }

  __device__ void advance() {
    if (!last()) {
      load_ += kStep;
      return;
    }
    load_ = threadIdx.x % 32;
    pair_ += uint64_t{gridDim.x} * kMatVecWarps;
    if (there()) open();
  }

 private:
  static constexpr uint32_t kStep = 32 * kMatVecUnroll;
  static constexpr uint32_t kParts = cut == Cut::kHalves ? 2 : 1;

  __device__ void open() {
    rows_ = find_pair<cut>(args_, pair_);
    const uint64_t row = kParts * n_loads_;
    a_ = reinterpret_cast<const uint4*>(rows_.first->weight.data) + rows_.a * row;
    b_ = cut == Cut::kHalves
             ? a_ + n_loads_
             : reinterpret_cast<const uint4*>(rows_.second->weight.data) + rows_.b * row;
  }

  const MatVecArgs& args_;
  uint64_t n_pairs_;
  uint64_t pair_;
  uint32_t n_loads_;  // of a row, or half of one
  uint32_t load_;     // this lane's first of the chunk
  RowPair rows_;
  const uint4* a_ = nullptr;
  const uint4* b_ = nullptr;
};

template <class W, int R, Cut cut>
__global__ void __launch_bounds__(kMatVecWarps * 32)
    matvec(const __grid_constant__ MatVecArgs args, uint64_t n_pairs) {
  extern __shared__ __align__(16) float rows[];  // [R, stride]
  __shared__ float area[kMatVecWarps];
  const auto stride = static_cast<uint32_t>(args.products[0].weight.stride);
  let_next_begin();
  // One walk asks for weights, the other follows a chunk behind and multiplies.
  Walk<W, cut> ahead(args, n_pairs);
  Walk<W, cut> here = ahead;
  uint4 a[kMatVecUnroll] = {};
  uint4 b[kMatVecUnroll] = {};
  if (ahead.there()) {
#pragma unroll
    for (int i = 0; i < kMatVecUnroll; ++i) {
      a[i] = ahead.first(i);
      b[i] = ahead.second(i);
    }
    ahead.advance();
  }
  wait_for_inputs();
  bring_rows<W, R>(args, stride, rows, area);
  float sums[2][R] = {};
  while (here.there()) {
    const bool more = ahead.there();
#pragma unroll
    for (int i = 0; i < kMatVecUnroll; ++i) {
      if (here.within(i)) {
        accumulate<W, R, cut>(a[i], b[i], rows, stride, here.load(i), here.n_loads(), sums);
      }
      if (more) {
        a[i] = ahead.first(i);
        b[i] = ahead.second(i);
      }
    }
    if (more) ahead.advance();
    if (here.last()) {
#pragma unroll
      for (uint32_t t = 0; t < R; ++t) {
        const float y0 = warp_sum(sums[0][t]);
        const float y1 = warp_sum(sums[1][t]);
        if (threadIdx.x % 32 == t && t < args.n_rows) {
          finish_pair<cut>(args, here.pair(), t, y0, y1);
        }
        sums[0][t] = sums[1][t] = 0.0f;
      }
    }
    here.advance();
  }
}

}  // namespace godwit::cuda
