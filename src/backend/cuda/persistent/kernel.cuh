// The persistent kernel: one launch is one token. CTA = multiprocessor: eight consumer warps and a
// loader walk the same table of phases. edges.cuh says how CTAs wait for one another, ring.cuh how
// weights and KV arrive, matvec.cuh and attention.cuh what a phase does.
#pragma once

#include "backend/cuda/persistent/attention.cuh"
#include "backend/cuda/persistent/matvec.cuh"

namespace godwit::cuda::persistent {

__device__ __forceinline__ float element_of(const EmbedArgs& embed, uint64_t index) {
  switch (embed.type) {
    case TensorType::kF32:
      return __ldg(static_cast<const float*>(embed.table) + index);
    case TensorType::kF16:
      return __half2float(static_cast<const __half*>(embed.table)[index]);
    default:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(embed.table)[index]);
  }
}

// Version 0 of the residual, a few words by each CTA.
__device__ __forceinline__ void embed(const TokenArgs& args) {
  const uint32_t per_cta = (args.embed.dim + gridDim.x - 1) / gridDim.x;
  const int32_t token = args.token_from != nullptr ? *args.token_from : args.token;
  const uint64_t row = static_cast<uint64_t>(token) * args.embed.stride;
  for (uint32_t i = threadIdx.x; i < per_cta; i += kThreads) {
    const uint32_t word = blockIdx.x * per_cta + i;
    if (word >= args.embed.dim) break;
    const float x = element_of(args.embed, row + word) * args.embed.scale;
#pragma unroll
    for (uint32_t r = 0; r < kReplicas; ++r) {
      publish(args.words + r * args.n_words + args.embed.out.offset + word, x,
              (args.epoch * args.embed.out.step) & 3u);
    }
  }
}

__device__ __forceinline__ void reduce_best(Best& best) {
#pragma unroll
  for (int o = 16; o != 0; o >>= 1) {
    const float v = __shfl_xor_sync(~0u, best.value, o);
    const uint32_t r = __shfl_xor_sync(~0u, best.row, o);
    best.consider(v, r);
  }
}

// The largest logit of all: warps, then CTAs by tagged words that CTA 0 awaits.
__device__ __forceinline__ void publish_argmax(const Consumer& me, Best best, Best* shared) {
  reduce_best(best);
  if (me.lane == 0) shared[me.warp] = best;
  me.sync();
  if (me.warp != 0) return;
  best = me.lane < kConsumerWarps ? shared[me.lane] : Best{};
  reduce_best(best);
  const uint32_t tag = me.args.epoch & 3u;
  if (me.lane == 0) publish_best(me.args.best + me.cta, best.value, best.row, tag);
  if (me.cta != 0) return;
  best = Best{};
  for (uint32_t i = me.lane; i < gridDim.x; i += 32) {
    unsigned long long word;
    for (uint32_t turns = 0;;) {
      word = load_best(me.args.best + i);
      if ((word & 3u) == tag || give_up(me.watch, turns, Awaited::kBest)) break;
    }
    best.consider(__uint_as_float(static_cast<uint32_t>(word >> 32)),
                  static_cast<uint32_t>(word) >> 2);
  }
  __syncwarp();
  reduce_best(best);
  if (me.lane == 0) *me.args.best_token = static_cast<int32_t>(best.row);
}

struct SharedState {
  unsigned long long full[kMaxRingSlots];
  unsigned long long empty[kMaxRingSlots];
  long long deadline;
  uint32_t counts[64];
  float squares[2 * kSquares];
  float tops[kConsumerWarps];
  float best_values[2 * kConsumerWarps];  // Best[kConsumerWarps]
  uint32_t dead;
  uint32_t left;
};

template <class T>
__device__ __forceinline__ void copy_table(char* to, const T* from, uint32_t n) {
  static_assert(sizeof(T) % 4 == 0);
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(from);
  for (uint32_t i = threadIdx.x; i < n * sizeof(T) / 4; i += kThreads) {
    reinterpret_cast<uint32_t*>(to)[i] = __ldg(words + i);
  }
}

// Fills `works`; all threads of the CTA, which meet in here.
__device__ __forceinline__ void plan_work(const TokenArgs& args, const Phase* phases,
                                          const Shape* shapes, Work* works) {
  for (uint32_t p = threadIdx.x; p < args.n_phases; p += kThreads) {
    const Shape& shape = shapes[phases[p].shape];
    if (shape.kind == PhaseKind::kAttend) {
      works[p].first = blockIdx.x % shape.pieces;
      works[p].count = slots_of(shape, 0, blockIdx.x, gridDim.x, args.position);
      works[p].begin = works[p].count;
      works[p].limit = 1;
    } else {
      const Blocks mine = blocks_of(shape, phases[p].rotate, blockIdx.x, gridDim.x);
      works[p].first = mine.first;
      works[p].count = mine.count;
      works[p].begin = mine.count * shape.n_chunks;
      works[p].limit = 0;
    }
  }
  __syncthreads();
  // One phase a thread (schedule.cpp allows no more phases than threads); for the time being
  // `begin` is a phase's own slots and `limit` whether it is attention.
  const uint32_t p = threadIdx.x;
  uint32_t begin = 0;
  uint32_t limit = 0;
  if (p < args.n_phases) {
    for (uint32_t q = 0; q < p; ++q) begin += works[q].begin;
    limit = begin + works[p].begin;
    for (uint32_t q = p + 1; q < args.n_phases && works[q].limit == 0; ++q) limit += works[q].begin;
  }
  __syncthreads();
  if (p < args.n_phases) {
    works[p].begin = begin;
    works[p].limit = limit;
  }
  __syncthreads();
}

template <class Half, class KvHalf, int HD, uint32_t kGroups>
__device__ __forceinline__ void consume(const TokenArgs& args, char* memory, SharedState& state,
                                        const Ring& ring, const Watch& watch) {
  const Phase* const phases = reinterpret_cast<const Phase*>(memory + args.shared.phases);
  const Shape* const shapes = reinterpret_cast<const Shape*>(memory + args.shared.shapes);
  const Work* const works = reinterpret_cast<const Work*>(memory + args.shared.works);
  Consumer me{.args = args,
              .phases = phases,
              .shapes = shapes,
              .works = works,
              .ring = ring,
              .watch = watch,
              .regions = memory + args.shared.activations,
              .sums = reinterpret_cast<float*>(memory + args.shared.partial_sums),
              .counts = state.counts,
              .owned = reinterpret_cast<float*>(memory + args.shared.owned),
              .attention = reinterpret_cast<float*>(memory + args.shared.attention),
              .squares = state.squares,
              .tops = state.tops,
              .left = &state.left,
              .words = args.words + blockIdx.x % kReplicas * args.n_words,
              .cta = blockIdx.x,
              .thread = threadIdx.x,
              .warp = threadIdx.x / 32,
              .lane = threadIdx.x % 32,
              .half = threadIdx.x / 32 % 2,
              .region = 0,
              .side = 0,
              .kv_head = 0,
              .own_piece = 0};
  for (uint32_t i = 0; i < args.n_shapes; ++i) {
    if (shapes[i].kind != PhaseKind::kAttend) continue;
    me.kv_head = me.cta / shapes[i].pieces;
    me.own_piece = own_piece(shapes[i], args.position);
  }
  Place place;
  place.next = place.fetched = place.slot = me.warp / 2;
  place.limit = works[0].limit;  // the first phase is a mat-vec
  uint4 held[16];
  Asked<kGroups> asked;
  Ahead<kGroups> ahead = {};
  load_ahead(me, 0, ahead);
  Best best;
  fetch(me.ring, place, me.half, me.watch, held);
  for (uint32_t p = 0; p < args.n_phases; ++p) {
    me.watch.phase = p;
    me.stamp(0);
    if (shapes[phases[p].shape].kind == PhaseKind::kMatvec) {
      matvec<Half, kGroups>(me, place, held, asked, ahead, best);
    } else {
      // Nothing is on its way across attention: says so to the register allocator.
      asked = {};
      ahead = {};
      attend<KvHalf, HD>(me, place, held);
      load_ahead(me, p + 1, ahead);
    }
  }
  if (shapes[phases[args.n_phases - 1].shape].finish == Finish::kLogits) {
    publish_argmax(me, best, reinterpret_cast<Best*>(state.best_values));
  }
  me.watch.phase = args.n_phases;
  me.stamp(0);
}

// kGroups: 2,048 columns that a stage may have.
template <class Half, class KvHalf, int HD, uint32_t kGroups>
__global__ void __launch_bounds__(kThreads, 1)
    token_kernel(const __grid_constant__ TokenArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // elsewhere empty: executor.cpp asks for sm_90
  extern __shared__ __align__(128) char memory[];
  __shared__ SharedState state;
  const Phase* const phases = reinterpret_cast<const Phase*>(memory + args.shared.phases);
  const Shape* const shapes = reinterpret_cast<const Shape*>(memory + args.shared.shapes);
  embed(args);
  copy_table(memory + args.shared.phases, args.phases, args.n_phases);
  copy_table(memory + args.shared.shapes, args.shapes, args.n_shapes);
  if (threadIdx.x < 64) state.counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    state.dead = 0;
    state.left = 0;
    state.deadline = global_timer() + args.patience_ns;
    for (uint32_t s = 0; s < args.shared.ring_slots; ++s) {
      barrier_init(&state.full[s], 1);
      barrier_init(&state.empty[s], 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  plan_work(args, phases, shapes, reinterpret_cast<Work*>(memory + args.shared.works));

  const Ring ring{memory, state.full, state.empty, args.shared.ring_slots};
  const Watch watch{args.error, &state.dead, &state.deadline, 0};
  if (threadIdx.x >= kConsumerThreads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == kConsumerThreads) {
      Loader loader(ring, args.tuning, watch, &state.left);
      loader.run(args, phases, shapes, reinterpret_cast<const Work*>(memory + args.shared.works));
      loader.settle();
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume<Half, KvHalf, HD, kGroups>(args, memory, state, ring, watch);
  }
#endif
}

}  // namespace godwit::cuda::persistent
