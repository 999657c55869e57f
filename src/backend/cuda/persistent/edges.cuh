// How CTAs wait for one another: there are no counters, no barriers across the grid and no fences.
// An activation is one 32-bit word: a float whose two lowest mantissa bits are a tag, the number of
// the word's version mod 4. Whoever owns a row stores the word (relaxed, gpu scope, past L1);
// whoever needs it loads the word itself, again and again, until the tag is right. A word is one
// location, so value and tag cannot be torn apart, and no other memory is read on its account,
// so no ordering between locations is needed. This file has every such access there is.
// Words that all CTAs await lie in memory four times (kReplicas), each copy asked for by a quarter
// of them: 132 CTAs at one line queue up at its slice of the L2, and the store they wait for behind
// them (743 to 691 us a token at 2,048 positions).
//
// Why a tag cannot be mistaken. A word's versions are numbered through a token (the residual's
// first place has n_layers + 1, every other buffer n_layers) and go on from token to token: version
// v of epoch e has tag (v + e * step) mod 4 with step = versions per token mod 4; memory starts as
// 0xffffffff, tag 3, the epoch as 0. Claim: a reader of version n can only see n - 1 or n.
//  - Never n - 2 or older (n - 4 has the same tag): each word of each version is awaited by at
//    least one CTA in every layer, unused pieces of attention included (they publish a sum of 0),
//    and a version n + 1 of any buffer is begun only by CTAs that depend, through words they have
//    seen, on those readers. Once anybody's load has returned version n - 1, the word is at the L2,
//    which is where all of these loads are answered: nothing older can come back.
//  - Never n + 1: whoever reads a version publishes words of the same phase, and only after a
//    barrier of its CTA that its warps reach when they have read. All words of all phases of a
//    layer are awaited on the way to its last residual, and every word of the next layer depends on
//    all of that residual. The two residuals take turns, so that a phase adds to one place while
//    slower CTAs still read the other.
// schedule_check.cpp replays this with vector clocks for each table. Between launches the order of
// the stream does the same. After a launch that stopped early all words are set anew.
//
// The watchdog: a wait that outlasts the kernel's deadline writes one ErrorRecord and marks its CTA
// dead; all waits of a dead CTA return at once, so that the kernel ends, with nonsense, and the
// host finds the record.
#pragma once

#include "backend/cuda/persistent/kernel.h"
#include "backend/cuda/persistent/phase.h"

namespace godwit::cuda::persistent {

struct Watch {
  ErrorRecord* record;        // in global memory
  volatile uint32_t* dead;    // in shared memory
  const long long* deadline;  // in shared memory, global timer
  uint32_t phase;
};

__device__ __forceinline__ long long global_timer() {
  long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

// Called by every turn of a wait. True: stop waiting. Looks at clocks every 256th time only.
__device__ __forceinline__ bool give_up(const Watch& watch, uint32_t& turns, Awaited what) {
  if ((++turns & 255u) != 0) return false;
  if (*watch.dead != 0) return true;
  if (global_timer() < *watch.deadline) return false;
  *watch.dead = 1;
  if (atomicCAS(&watch.record->set, 0u, 1u) == 0) {
    watch.record->phase = watch.phase;
    watch.record->cta = blockIdx.x;
    watch.record->warp = threadIdx.x / 32;
    watch.record->awaited = what;
  }
  return true;
}

__device__ __forceinline__ uint32_t load_word(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ uint2 load_words2(const uint32_t* p) {
  uint2 v;
  asm volatile("ld.relaxed.gpu.global.v2.b32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ uint4 load_words4(const uint32_t* p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

__device__ __forceinline__ float untagged(uint32_t word) { return __uint_as_float(word & ~3u); }

// Truncates: rounding would carry a NaN's mantissa into its sign.
__device__ __forceinline__ void publish(uint32_t* p, float v, uint32_t tag) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(p), "r"((__float_as_uint(v) & ~3u) | tag)
               : "memory");
}

// 0 where the tag is right.
__device__ __forceinline__ uint32_t wrong(uint32_t word, uint32_t tag) { return (word ^ tag) & 3u; }
__device__ __forceinline__ uint32_t wrong(uint2 w, uint32_t tag) {
  return ((w.x ^ tag) | (w.y ^ tag)) & 3u;
}
__device__ __forceinline__ uint32_t wrong(uint4 w, uint32_t tag) {
  return ((w.x ^ tag) | (w.y ^ tag) | (w.z ^ tag) | (w.w ^ tag)) & 3u;
}

// A CTA's best logit: value and (index, tag) in one 64-bit word.
__device__ __forceinline__ void publish_best(unsigned long long* p, float v, uint32_t index,
                                             uint32_t tag) {
  const unsigned long long word =
      static_cast<unsigned long long>(__float_as_uint(v)) << 32 | (index << 2 | tag);
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}
__device__ __forceinline__ unsigned long long load_best(const unsigned long long* p) {
  unsigned long long v;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

}  // namespace godwit::cuda::persistent
