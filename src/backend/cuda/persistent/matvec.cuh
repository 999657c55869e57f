// The mat-vec phase of the persistent kernel.
//
// Computes: y[r] = finish(rs * sum_c W[r, c] (g[c] x[c])), rs = 1 / sqrt(mean(x^2) + epsilon) and
//   g the norm's weight, both 1 without a norm; finish as in phase.h (Finish).
// Shapes and types: W [rows, cols] bf16 or f16 in slots (layout.h), zeros beyond; x tagged f32
//   words [cols], y tagged f32 words or plain f32 logits.
// Preconditions: cols a multiple of 32; see schedule.cpp, which refuses everything else.
// Bytes moved: n_blocks * n_chunks * 16384, each once; x is 4 * cols per CTA and look, from L2.
// Work split: blocks of 8 rows to CTAs; a block's slots to pairs of warps, a warp half a slot: 16
//   mma of 8 rows x 32 columns. The block's halves meet in shared memory; the warp that brings the
//   last one adds them in fixed order and publishes.
// Arithmetic: bounded: x enters as high + low part (16 mantissa bits, f16: 21), products
//   accumulate in f32.
// Synchronisation: reads words by polling, one barrier of the CTA per stage, none to publish.
//   Writing region r is safe after that one barrier: who reads r of two takes ago has passed the
//   barrier in between.
// Reference: backend/reference/steps.cpp (mat_mul, rms_norm).
// Tried and rejected: docs/MEGAKERNEL.md.
#pragma once

#include "backend/cuda/persistent/consumer.cuh"
#include "backend/cuda/persistent/layout.h"
#include "backend/cuda/persistent/tensor_core.cuh"

namespace godwit::cuda::persistent {

// A stage's words on their way into a thread's registers: a group of 8 for every 2,048 columns.
template <uint32_t kGroups>
struct Asked {
  uint2 words[kGroups][4];
  uint32_t extra = 0;  // the residual of one of the CTA's own rows
  uint32_t need = 0;   // a bit for each pair of words not yet seen with the right tag; 31: extra
  bool ready = false;  // asked for already
};
inline constexpr uint32_t kExtraBit = 1u << 31;

// The thread's words of group r: pairs at 0, 8, 16, 24 from here, in 32 columns.
__device__ __forceinline__ uint32_t group_column(const Consumer& me, uint32_t r) {
  const uint32_t i = me.thread + r * kConsumerThreads;
  return i / 4 * kOperandColumns + i % 4 * 2;
}

struct OwnRow {
  uint32_t row = 0;
  bool exists = false;
};

// The row of its CTA that a thread adds a bias or a residual to.
__device__ __forceinline__ OwnRow own_row(const Consumer& me, const Work& work,
                                          const Shape& shape) {
  const uint32_t row =
      (work.first + me.thread / kSlotRows * gridDim.x) * kSlotRows + me.thread % kSlotRows;
  return {row,
          shape.finish <= Finish::kAdd && me.thread < work.count * kSlotRows && row < shape.rows};
}

// Loads what is missing, all of it in flight at once: each load is a round trip to the L2.
template <uint32_t kGroups>
__device__ __forceinline__ void look(const Consumer& me, const Work& work, const Shape& shape,
                                     uint32_t stage, Asked<kGroups>& asked) {
  const uint32_t* from = me.words + shape.in.offset + stage * shape.stage_chunks * kSlotColumns;
#pragma unroll
  for (uint32_t r = 0; r < kGroups; ++r) {
    const uint32_t* group = from + group_column(me, r);
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) {
      if ((asked.need >> (4 * r + e) & 1u) != 0) asked.words[r][e] = load_words2(group + e * 8);
    }
  }
  if ((asked.need & kExtraBit) != 0) {
    asked.extra = load_word(me.words + shape.extra.offset + own_row(me, work, shape).row);
  }
}

template <uint32_t kGroups>
__device__ __forceinline__ void ask(const Consumer& me, const Work& work, const Shape& shape,
                                    uint32_t stage, Asked<kGroups>& asked) {
  asked.need = 0;
  asked.ready = true;
  const uint32_t first = stage * shape.stage_chunks * kSlotColumns;
  const uint32_t columns = stage_width(shape, stage) * kSlotColumns;
#pragma unroll
  for (uint32_t r = 0; r < kGroups; ++r) {
    const uint32_t column = group_column(me, r);
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) asked.words[r][e] = make_uint2(0, 0);
    if (column < columns && first + column < shape.cols) asked.need |= 15u << (4 * r);
  }
  if (stage == 0 && shape.finish == Finish::kAdd && own_row(me, work, shape).exists) {
    asked.need |= kExtraBit;
  }
  look(me, work, shape, stage, asked);
}

// What a phase needs beside words, loaded a phase ahead: it comes from memory, not from the L2.
template <uint32_t kGroups>
struct Ahead {
  float2 norm[kGroups][4];
  float bias = 0.0f;  // of one of the CTA's own rows
};

template <uint32_t kGroups>
__device__ __forceinline__ void load_ahead(const Consumer& me, uint32_t p, Ahead<kGroups>& ahead) {
  if (p >= me.args.n_phases) return;
  const Phase& phase = me.phases[p];
  const Shape& shape = me.shapes[phase.shape];
  const Work& work = me.works[p];
  if (shape.kind != PhaseKind::kMatvec) return;
  if (phase.norm != nullptr) {
#pragma unroll
    for (uint32_t r = 0; r < kGroups; ++r) {
      const uint32_t column = group_column(me, r);
      if (column >= shape.cols) continue;
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        ahead.norm[r][e] = __ldg(reinterpret_cast<const float2*>(phase.norm + column + e * 8));
      }
    }
  }
  if (phase.bias != nullptr) {
    const OwnRow own = own_row(me, work, shape);
    if (own.exists) ahead.bias = __ldg(phase.bias + own.row);
  }
}

// What take() leaves with every thread.
struct Taken {
  float squares = 0.0f;  // sum of x^2 (of phases with a norm, which have one stage)
  float unscale = 1.0f;  // of this stage's products (f16)
};

// Waits for a stage's words, leaves them as B operands in the other region, meets the other warps.
template <class Half, uint32_t kGroups>
__device__ __forceinline__ void take(Consumer& me, const Phase& phase, const Work& work,
                                     const Shape& shape, uint32_t stage, Asked<kGroups>& asked,
                                     const Ahead<kGroups>& ahead, Taken& taken) {
  const uint32_t want = me.tag(shape.in, phase.in_tag);
  const uint32_t want_extra = me.tag(shape.extra, phase.extra_tag);
  if (!asked.ready) ask(me, work, shape, stage, asked);
  asked.ready = false;
  const bool owns = stage == 0 && own_row(me, work, shape).exists;
  float own = phase.bias != nullptr ? ahead.bias * shape.scale : 0.0f;
  const bool adds = (asked.need & kExtraBit) != 0;
  for (uint32_t turns = 0;;) {
#pragma unroll
    for (uint32_t r = 0; r < kGroups; ++r) {
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        if (wrong(asked.words[r][e], want) == 0) asked.need &= ~(1u << (4 * r + e));
      }
    }
    if (wrong(asked.extra, want_extra) == 0) asked.need &= ~kExtraBit;
    if (asked.need == 0 || give_up(me.watch, turns, Awaited::kActivation)) break;
    if (me.args.tuning.pause_ns != 0) __nanosleep(me.args.tuning.pause_ns);
    look(me, work, shape, stage, asked);
  }
  if (adds) own += untagged(asked.extra);
  // As with regions: who reads this side of two phases ago has passed the barrier in between.
  if (stage == 0) me.side ^= 1u;
  if (owns) me.owned[me.side * kMaxOwnedRows + me.thread] = own;

  me.region ^= 1u;
  float2 value[kGroups][4];
  float squares = 0.0f;
  float top = 0.0f;
#pragma unroll
  for (uint32_t r = 0; r < kGroups; ++r) {
#pragma unroll
    for (uint32_t e = 0; e < 4; ++e) {
      const float2 x = make_float2(untagged(asked.words[r][e].x), untagged(asked.words[r][e].y));
      squares += x.x * x.x + x.y * x.y;
      value[r][e] = x;
      if (phase.norm != nullptr) {
        value[r][e] = make_float2(x.x * ahead.norm[r][e].x, x.y * ahead.norm[r][e].y);
      }
      if (Half::kScale) top = fmaxf(top, fmaxf(fabsf(value[r][e].x), fabsf(value[r][e].y)));
    }
  }
  // The quad's sum; the rest is added behind the barrier, beside the products.
  squares += __shfl_xor_sync(~0u, squares, 1);
  squares += __shfl_xor_sync(~0u, squares, 2);
  float* const sums_of_squares = me.squares + me.region * kSquares;
  if (me.lane % 4 == 0) sums_of_squares[me.thread / 4] = squares;
  float scale = 1.0f;
  if (Half::kScale) {
    // By a power of two, so that the largest of the stage is in [1, 2).
    for (int o = 16; o != 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    if (me.lane == 0) me.tops[me.warp] = top;
    me.sync();
    for (uint32_t w = 0; w < kConsumerWarps; ++w) top = fmaxf(top, me.tops[w]);
    const uint32_t exponent = min(max(__float_as_uint(top) >> 23, 1u), 253u);
    scale = __uint_as_float((254u - exponent) << 23);
    taken.unscale = __uint_as_float(exponent << 23);
  }
  uint2* const operand = me.operand();
#pragma unroll
  for (uint32_t r = 0; r < kGroups; ++r) {
    const uint32_t i = me.thread + r * kConsumerThreads;
    if (i / 4 * kOperandColumns >= stage_width(shape, stage) * kSlotColumns) continue;
    uint2 high[2];
    uint2 low[2];
#pragma unroll
    for (uint32_t e = 0; e < 2; ++e) {
      const float2 a = value[r][2 * e];
      const float2 b = value[r][2 * e + 1];
      high[e].x = split<Half>(make_float2(a.x * scale, a.y * scale), low[e].x);
      high[e].y = split<Half>(make_float2(b.x * scale, b.y * scale), low[e].y);
    }
    // Two groups of 32 columns lie together: one 16-byte load of a lane serves two products.
    const uint32_t group = i / 4;
    uint2* const to = operand + (group / 2 * 16 + i % 4) * 2 + group % 2;
    to[0] = high[0];
    to[8] = low[0];
    to[16] = high[1];
    to[24] = low[1];
  }
  me.sync();
  if (phase.norm == nullptr) return;
  float2 two = *reinterpret_cast<const float2*>(sums_of_squares + me.lane * 2);
  two.x += two.y;
#pragma unroll
  for (int o = 16; o != 0; o >>= 1) two.x += __shfl_xor_sync(~0u, two.x, o);
  taken.squares = two.x;
}

// Half a slot against its 512 columns of the activation: the sum of row lane / 4, in the lanes with
// lane % 4 == 0.
template <class Half>
__device__ __forceinline__ float dot(const uint4 (&held)[16], const uint4* operand) {
  // All loads first: left to itself the compiler waits for each before its product.
  uint4 b[8];
#pragma unroll
  for (int g = 0; g < 8; ++g) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[g].x), "=r"(b[g].y), "=r"(b[g].z), "=r"(b[g].w)
                 : "r"(shared_address(operand + g * 16)));
  }
  float d[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) d[i][0] = d[i][1] = d[i][2] = d[i][3] = 0.0f;
#pragma unroll
  for (int g = 0; g < 8; ++g) {
    Half::multiply(d[2 * (g & 1)], held[2 * g], make_uint2(b[g].x, b[g].y));
    Half::multiply(d[2 * (g & 1) + 1], held[2 * g + 1], make_uint2(b[g].z, b[g].w));
  }
  // Columns 0 and 1 hold k..k+15 times high and low (rows 0-7), 2 and 3 the rest (rows 8-15).
  const float rows =
      (d[0][0] + d[1][0]) + (d[2][0] + d[3][0]) + ((d[0][1] + d[1][1]) + (d[2][1] + d[3][1]));
  const float rest =
      (d[0][2] + d[1][2]) + (d[2][2] + d[3][2]) + ((d[0][3] + d[1][3]) + (d[2][3] + d[3][3]));
  const float v = (threadIdx.x & 1u) != 0 ? rest : rows;
  return v + __shfl_xor_sync(~0u, v, 1);
}

struct Best {
  float value = -INFINITY;
  uint32_t row = 0x3fffffffu;

  // The lower row of equals; a NaN never wins.
  __device__ __forceinline__ void consider(float v, uint32_t r) {
    if (v > value || (v == value && r < row)) {
      value = v;
      row = r;
    }
  }
};

__device__ __forceinline__ float activate(float g, uint32_t gelu) {
  if (gelu == 0) return g / (1.0f + expf(-g));
  return 0.5f * g * (1.0f + tanhf(0.7978845608f * (g + 0.044715f * g * g * g)));
}

// Where a phase's rows go, read from the table before it is needed.
struct Target {
  uint32_t* words;  // the replica that the lane's group of eight writes
  uint32_t tag;
  Finish finish;
};

// A finished block: y is row lane % 8, the same in all four groups of lanes.
__device__ __forceinline__ void finish_block(const Consumer& me, const Shape& shape,
                                             const Target& to, uint32_t index, uint32_t block,
                                             float y, Best& best) {
  const uint32_t row = block * kSlotRows + me.lane % kSlotRows;
  uint32_t* const out = to.words;
  const uint32_t tag = to.tag;
  switch (to.finish) {
    case Finish::kStore:
      if (me.lane >= kSlotRows) break;  // one copy is enough for the few who ask
      [[fallthrough]];
    case Finish::kAdd: {
      const float own = me.owned[me.side * kMaxOwnedRows + index * kSlotRows + me.lane % kSlotRows];
      if (row < shape.rows) publish(out + row, y * shape.scale + own, tag);
      break;
    }
    case Finish::kGate: {
      const float up = __shfl_down_sync(~0u, y, 4);
      const uint32_t gate_row = block * 4 + me.lane % kSlotRows;
      if (me.lane % kSlotRows < 4 && gate_row < shape.rows) {
        publish(out + gate_row, activate(y, shape.gelu) * up, tag);
      }
      break;
    }
    case Finish::kLogits: {
      y *= shape.scale;
      if (shape.softcap != 0.0f) y = shape.softcap * tanhf(y / shape.softcap);
      if (me.lane < kSlotRows && row < shape.rows) {
        me.args.logits[row] = y;
        best.consider(y, row);
      }
      break;
    }
  }
}

// Counts a half of a block whose sums this warp has just stored, says how many there were before.
// Relaxed: shared memory takes a multiprocessor's accesses in the order in which they come, so who
// finds the count full also finds the sums. An acquire-release atomic is MEMBAR here, which waits
// for this thread's loads from global memory too, those of the next stage's words.
__device__ __forceinline__ uint32_t count_half(uint32_t* count, uint32_t lane) {
  __syncwarp();
  uint32_t before = 0;
  if (lane == 0) {
    asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "r"(shared_address(count))
                 : "memory");
  }
  before = __shfl_sync(~0u, before, 0);
  __syncwarp();
  return before;
}

__device__ __forceinline__ uint32_t divide_small(uint32_t n, uint32_t by) {
  return by == 1 ? n : by == 2 ? n >> 1 : by == 4 ? n >> 2 : __umulhi(n, 0x55555556u);
}

template <class Half, uint32_t kGroups>
__device__ __forceinline__ void matvec(Consumer& me, Place& place, uint4 (&held)[16],
                                       Asked<kGroups>& asked, Ahead<kGroups>& ahead, Best& best) {
  const uint32_t p = me.watch.phase;
  const Phase& phase = me.phases[p];
  const Shape& shape = me.shapes[phase.shape];
  const Work& work = me.works[p];
  const uint32_t blocks = work.count;
  const Shape* next = p + 1 < me.args.n_phases ? &me.shapes[me.phases[p + 1].shape] : nullptr;
  if (blocks == 0) {
    load_ahead(me, p + 1, ahead);
    return;
  }
  const uint32_t per_block = 2 * shape.n_chunks;
  const uint32_t end = place.phase_begin + blocks * shape.n_chunks;
  const bool staged_next = next != nullptr && next->n_stages > 1 && me.works[p + 1].count != 0;
  const Target target{me.args.words + me.lane / kSlotRows * me.args.n_words + shape.out.offset,
                      me.tag(shape.out, phase.out_tag), shape.finish};
  Taken taken;
  uint32_t begin = place.phase_begin;
  for (uint32_t stage = 0; stage < shape.n_stages; ++stage) {
    take<Half, kGroups>(me, phase, work, shape, stage, asked, ahead, taken);
    if (stage == 0) {
      me.stamp(1);
      load_ahead(me, p + 1, ahead);
    }
    const uint32_t width = stage_width(shape, stage);
    const uint32_t stage_end = begin + blocks * width;
    if (stage + 1 < shape.n_stages) ask(me, work, shape, stage + 1, asked);
    const float factor =
        phase.norm != nullptr
            ? rsqrtf(taken.squares / static_cast<float>(shape.cols) + shape.epsilon)
            : 1.0f;
    const uint4* const operand =
        reinterpret_cast<const uint4*>(me.operand()) + me.half * 128 + me.lane % 16;
    for (; place.next < stage_end; place.next += kPairs) {
      const uint32_t j = place.next - begin;
      const uint32_t index = divide_small(j, width);
      const uint32_t chunk = j - index * width;
      if (me.thread == 0) *me.left = end - place.next;
      const bool last = place.next + kPairs >= end;
      // What the next phase reads first was published long ago: its way here costs nothing now.
      if (last && staged_next) {
        ask(me, me.works[p + 1], *next, 0, asked);
      }
      float v = dot<Half>(held, operand + chunk * 256);
      if (Half::kScale) v *= taken.unscale;
      const uint32_t open = index & (shape.open_blocks - 1);
      float* const sums = me.sums + open * per_block * kSlotRows;
      const uint32_t part = (stage * shape.stage_chunks + chunk) * 2 + me.half;
      if ((me.lane & 3u) == 0) sums[part * kSlotRows + me.lane / 4] = v;
      const uint32_t before = count_half(me.counts + open, me.lane);
      if (before == per_block - 1) {
        if (me.lane == 0) me.counts[open] = 0;
        float y = 0.0f;
        for (uint32_t i = me.lane / kSlotRows; i < per_block; i += 32 / kSlotRows) {
          y += const_cast<volatile float*>(sums)[i * kSlotRows + me.lane % kSlotRows];
        }
        y += __shfl_xor_sync(~0u, y, 8);
        y += __shfl_xor_sync(~0u, y, 16);
        finish_block(me, shape, target, index, work.first + index * gridDim.x, y * factor, best);
        __syncwarp();
      }
      fetch(me.ring, place, me.half, me.watch, held);
    }
    begin = stage_end;
  }
  place.phase_begin = end;
  me.stamp(2);
}

}  // namespace godwit::cuda::persistent
