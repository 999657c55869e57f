// A CTA's ring of slots in shared memory: the loader warp fills it by bulk async copies, in the
// fixed order of the whole token; pairs of consumer warps empty it, each warp its half of a slot.
// Two mbarriers a slot: `full` completes when the copy's bytes are there, `empty` when both warps
// have taken theirs. The loader waits for free slots and for a limit on what is in flight, since
// that queues ahead of every edge's messages, and for nothing else.
#pragma once

#include "backend/cuda/persistent/edges.cuh"

namespace godwit::cuda::persistent {

inline constexpr uint32_t kMaxRingSlots = 12;
inline constexpr uint32_t kLastSlots =
    64;  // more are left of no phase but the logits' and attention's

struct Ring {
  char* slots;  // [n_slots, kSlotBytes]
  unsigned long long* full;
  unsigned long long* empty;
  uint32_t n_slots;
};

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(unsigned long long* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}

__device__ __forceinline__ bool barrier_done(unsigned long long* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{.reg .pred P; mbarrier.try_wait.parity.shared.b64 P, [%1], %2; selp.u32 %0, 1, 0, P;}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void barrier_wait(unsigned long long* barrier, uint32_t parity,
                                             const Watch& watch, Awaited what) {
  for (uint32_t turns = 0;;) {
    if (barrier_done(barrier, parity) || give_up(watch, turns, what)) return;
  }
}

__device__ __forceinline__ void barrier_arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned long long* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void copy_slot(char* to, const void* from, unsigned long long* barrier,
                                          uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(kSlotBytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

// The same without a hint. "evict_normal" as a hint is not the same: 3,980 GB/s instead of 4,590.
__device__ __forceinline__ void copy_slot(char* to, const void* from, unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(kSlotBytes), "r"(shared_address(barrier))
      : "memory");
}

__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ uint64_t evict_last_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// The loader: one lane that walks the table as the consumers do, slots ahead of them.
class Loader {
 public:
  __device__ __forceinline__ Loader(const Ring& ring, const Tuning& tuning, const Watch& watch,
                                    const volatile uint32_t* left)
      : ring_(ring), tuning_(tuning), watch_(watch), left_(left) {
    stream_ = tuning.evict_first != 0 ? evict_first_policy() : 0;
    keep_ = evict_last_policy();
  }

  __device__ __forceinline__ void run(const TokenArgs& args, const Phase* phases,
                                      const Shape* shapes, const Work* works) {
    const uint32_t cta = blockIdx.x;
    for (uint32_t p = 0; p < args.n_phases; ++p) {
      const Phase& phase = phases[p];
      const Shape& shape = shapes[phase.shape];
      const Work& work = works[p];
      watch_.phase = p;
      last_ = shape.finish == Finish::kLogits;
      const uint64_t policy = phase.keep != 0 && tuning_.keep != 0 ? keep_ : stream_;
      if (shape.kind == PhaseKind::kAttend) {
        const uint32_t n = work.count;
        const uint32_t piece = work.first;
        const std::byte* from = phase.stream + cta / shape.pieces * shape.head_bytes;
        for (uint32_t i = 0; i < n; ++i) {
          next(from + static_cast<uint64_t>(piece + i * shape.pieces) * kSlotBytes, policy);
        }
        continue;
      }
      for (uint32_t stage = 0; stage < shape.n_stages; ++stage) {
        const uint32_t width = stage_width(shape, stage);
        for (uint32_t i = 0; i < work.count; ++i) {
          const uint32_t first = slot_index(shape, stage, work.first + i * gridDim.x, 0);
          for (uint32_t c = 0; c < width; ++c) {
            next(phase.stream + static_cast<uint64_t>(first + c) * kSlotBytes, policy);
          }
        }
      }
    }
  }

  // Copies must have landed before the CTA may end. After a normal token they have: their slots
  // were eaten. A dead CTA leaves some behind, which need no more than microseconds.
  __device__ __forceinline__ void settle() const {
    if (*watch_.dead != 0) __nanosleep(1'000'000);
  }

 private:
  __device__ __forceinline__ void next(const std::byte* from, uint64_t policy) {
    if (*watch_.dead != 0) return;
    if (count_ >= ring_.n_slots) {
      barrier_wait(&ring_.empty[slot_], parity_, watch_, Awaited::kSlotFree);
    }
    wait_for_window();
    barrier_expect(&ring_.full[slot_], kSlotBytes);
    char* const to = ring_.slots + slot_ * kSlotBytes;
    if (policy != 0) {
      copy_slot(to, from, &ring_.full[slot_], policy);
    } else {
      copy_slot(to, from, &ring_.full[slot_]);
    }
    ++count_;
    if (++slot_ == ring_.n_slots) {
      slot_ = 0;
      parity_ ^= 1;
    }
  }

  // Until the copy `window` places back has landed.
  __device__ __forceinline__ void wait_for_window() {
    const uint32_t odd = (count_ & 1u) != 0 ? tuning_.half : 0;
    const uint32_t left = *left_;
    // Of the last phase only when it is being eaten: the phases before still have their edges.
    const uint32_t window =
        last_ && left > kLastSlots
            ? tuning_.last_window
            : (left <= tuning_.near_slots ? tuning_.near_window : tuning_.window) + odd;
    if (window >= ring_.n_slots || count_ < window) return;
    const bool wraps = slot_ < window;
    const uint32_t back = wraps ? slot_ + ring_.n_slots - window : slot_ - window;
    barrier_wait(&ring_.full[back], wraps ? parity_ : parity_ ^ 1u, watch_, Awaited::kWindow);
  }

  const Ring& ring_;
  const Tuning& tuning_;
  Watch watch_;
  const volatile uint32_t* left_;
  uint64_t stream_;
  uint64_t keep_;
  uint32_t count_ = 0;
  uint32_t slot_ = 0;
  uint32_t parity_ = 1;
  bool last_ = false;
};

// A consumer warp's place in its CTA's stream of slots: every kPairs-th slot is its pair's. A slot
// moves into registers, which frees it in the ring, before the activation it will meet is known.
struct Place {
  uint32_t phase_begin = 0;  // slots of the CTA before this phase
  uint32_t next = 0;         // the next slot to multiply
  uint32_t fetched = 0;      // the next to take from the ring
  uint32_t limit = 0;        // slots of the CTA before the next attention, or of the token
  uint32_t slot = 0;         // of `fetched`, in the ring
  uint32_t parity = 0;

  __device__ __forceinline__ void step(uint32_t n_slots) {
    slot += kPairs;
    if (slot >= n_slots) {
      slot -= n_slots;
      parity ^= 1;
    }
    fetched += kPairs;
  }
};

__device__ __forceinline__ const uint4* half_slot(const Ring& ring, const Place& place,
                                                  uint32_t half) {
  return reinterpret_cast<const uint4*>(ring.slots + place.slot * kSlotBytes +
                                        half * (kSlotBytes / 2)) +
         threadIdx.x % 32;
}

// The warp has taken its half.
__device__ __forceinline__ void release(const Ring& ring, Place& place) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive(&ring.empty[place.slot]);
  place.step(ring.n_slots);
}

// Moves the warp's next half slot into registers, unless it belongs to attention, or to nobody.
__device__ __forceinline__ void fetch(const Ring& ring, Place& place, uint32_t half,
                                      const Watch& watch, uint4 (&held)[16]) {
  if (place.fetched >= place.limit) return;
  barrier_wait(&ring.full[place.slot], place.parity, watch, Awaited::kCopyLanded);
  const uint4* const from = half_slot(ring, place, half);
#pragma unroll
  for (int i = 0; i < 16; ++i) held[i] = from[i * 32];
  release(ring, place);
}

}  // namespace godwit::cuda::persistent
