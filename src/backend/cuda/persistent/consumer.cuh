// What the eight consumer warps of a CTA share: places in shared memory, who a thread is, the
// barrier among them. Filled once per token by kernel.cuh; matvec.cuh and attention.cuh use it.
#pragma once

#include "backend/cuda/persistent/ring.cuh"

namespace godwit::cuda::persistent {

inline constexpr uint32_t kSquares = kConsumerThreads / 4;

struct Consumer {
  const TokenArgs& args;
  const Phase* phases;
  const Shape* shapes;
  const Work* works;
  Ring ring;
  Watch watch;
  char* regions;            // two places for an activation in operand form, used in turn
  float* sums;              // [open blocks, 2 n_chunks, 8]
  uint32_t* counts;         // [open blocks]: halves of a block that are in `sums`
  float* owned;             // [2, own rows]: residual or bias, in turn
  float* attention;         // [warps, group, head_dim + 2]: maximum, sum, dims
  float* squares;           // [2, kSquares]
  float* tops;              // [warps]
  volatile uint32_t* left;  // slots of this phase still to eat, about: the loader's hint
  const uint32_t* words;    // the replica that this CTA reads
  uint32_t cta;
  uint32_t thread;  // of kConsumerThreads
  uint32_t warp;
  uint32_t lane;
  uint32_t half;       // which half of its pair's slots
  uint32_t region;     // 0 or 1: where the last activation lies
  uint32_t side;       // 0 or 1: which `owned` is this phase's
  uint32_t kv_head;    // of the CTA in attention
  uint32_t own_piece;  // which piece takes the token's own position

  [[nodiscard]] __device__ __forceinline__ uint2* operand() const {
    return reinterpret_cast<uint2*>(regions + region * args.shared.region_bytes);
  }
  // q, k and v of attention, [group + 2, head_dim]: where an activation would lie, between takes.
  [[nodiscard]] __device__ __forceinline__ float* heads() const {
    return reinterpret_cast<float*>(regions + (region ^ 1u) * args.shared.region_bytes);
  }
  __device__ __forceinline__ void sync() const {
    asm volatile("bar.sync 1, %0;" ::"n"(kConsumerThreads) : "memory");
  }
  __device__ __forceinline__ void stamp(uint32_t which) const {
    if (args.stamps == nullptr || thread != 0 || cta != args.stamped_cta) return;
    args.stamps[watch.phase * kStampsPerPhase + which] = clock64();
  }
  [[nodiscard]] __device__ __forceinline__ uint32_t tag(EdgeShape edge, uint32_t version) const {
    return (version + args.epoch * edge.step) & 3u;
  }
};

}  // namespace godwit::cuda::persistent
