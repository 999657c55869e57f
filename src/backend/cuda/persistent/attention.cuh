// The attention phase of the persistent kernel.
//
// Computes: q, k normed per head and turned by RoPE; k, v of the token appended to the cache;
//   out_h = softmax(scale q_h K^T) V over the token's own position and those before it.
// Shapes and types: q, k, v tagged words [n_heads + 2 n_kv_heads, HD]; K, V bf16 or f16 in operand
//   order (kv_layout.h); partials and out tagged words.
// Preconditions: at most kMaxGroup query heads to a KV head, HD 64 or 128, pieces <= kMaxPieces.
// Bytes moved: every old slot once; 4 HD bytes of KV written by the piece that owns the position.
// Work split: CTA = (KV head, piece); a piece is every pieces-th slot; four pairs of warps share
//   them, a warp half a slot. Query heads are the rows of the A operand: high parts in rows 0-7,
//   low parts in rows 8-15, so both land in one lane; then the probabilities likewise.
// Arithmetic: bounded: q and p as high + low part, online softmax in f32 per warp, merged in a
// fixed
//   order first in the CTA, then over the pieces. The token's own k and v, rounded as stored, come
//   from the words themselves in f32: the append (plain stores, read by later launches) and the
//   copy of its slot never meet, whatever that copy brings is masked.
// Synchronisation: polls q (and the own piece k, v); one barrier of the CTA; the partial is
//   published and polled by the warps that merge: no CTA waits for the slowest but those.
// Reference: backend/reference/steps.cpp (attend_head).
// Tried and rejected: registers looked ahead across this phase spill (1,132 to 885 us a token);
//   pieces that straddle two heads make their CTA late for every merge.
#pragma once

#include "backend/cuda/kv_layout.h"
#include "backend/cuda/persistent/consumer.cuh"
#include "backend/cuda/persistent/tensor_core.cuh"

namespace godwit::cuda::persistent {

// One head's dims as a quad of lanes holds them: pairs at i * 8 + lane % 4 * 2.
template <int HD>
struct Head {
  float2 dims[HD / 8];
};

// Waits for q of the CTA's heads, and k and v if it owns the position, a pair of words a thread and
// turn, and leaves them in shared memory, [group + 2, HD]. Each warp by itself would ask eight
// times as often for the same lines.
template <int HD>
__device__ __forceinline__ void take_heads(const Consumer& me, const Phase& phase,
                                           const Shape& shape, bool own) {
  constexpr uint32_t kTurns = (kMaxGroup + 2) * HD / 2 / kConsumerThreads + 1;
  float* const to = me.heads();
  const uint32_t q_pairs = shape.group * HD / 2;
  const uint32_t pairs = q_pairs + (own ? HD : 0);
  const uint32_t tag = me.tag(shape.in, phase.in_tag);
  const uint32_t* const all = me.args.words + shape.in.offset;
  const uint32_t* const q = all + me.kv_head * shape.group * HD;
  const uint32_t* const k = all + (shape.n_heads + me.kv_head) * HD;
  const uint32_t v_apart = shape.n_kv_heads * HD;
  uint2 words[kTurns];
  for (uint32_t turns = 0;;) {
    uint32_t missing = 0;
#pragma unroll
    for (uint32_t t = 0; t < kTurns; ++t) {
      const uint32_t i = me.thread + t * kConsumerThreads;
      const uint32_t j = i - q_pairs;
      if (i < q_pairs) words[t] = load_words2(q + i * 2);
      if (i >= q_pairs && i < pairs) {
        words[t] = load_words2(j < HD / 2 ? k + j * 2 : k + v_apart + (j - HD / 2) * 2);
      }
    }
#pragma unroll
    for (uint32_t t = 0; t < kTurns; ++t) {
      if (me.thread + t * kConsumerThreads < pairs) missing |= wrong(words[t], tag);
    }
    if (missing == 0 || give_up(me.watch, turns, Awaited::kQuery)) break;
    __nanosleep(me.args.tuning.pause_ns);
  }
#pragma unroll
  for (uint32_t t = 0; t < kTurns; ++t) {
    const uint32_t i = me.thread + t * kConsumerThreads;
    if (i < pairs) {
      reinterpret_cast<float2*>(to)[i] = make_float2(untagged(words[t].x), untagged(words[t].y));
    }
  }
  me.sync();
}

template <int HD>
__device__ __forceinline__ Head<HD> read_head(const float* heads, uint32_t row, uint32_t lane) {
  Head<HD> out;
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    out.dims[i] = *reinterpret_cast<const float2*>(heads + row * HD + i * 8 + lane % 4 * 2);
  }
  return out;
}

// x / rms(x) * weight, over the quad's dims.
template <int HD>
__device__ __forceinline__ void norm_head(Head<HD>& x, const float* weight, float epsilon,
                                          uint32_t lane) {
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    squares += x.dims[i].x * x.dims[i].x + x.dims[i].y * x.dims[i].y;
  }
  squares += __shfl_xor_sync(~0u, squares, 1);
  squares += __shfl_xor_sync(~0u, squares, 2);
  const float factor = rsqrtf(squares / static_cast<float>(HD) + epsilon);
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    const float2 w = __ldg(reinterpret_cast<const float2*>(weight + i * 8 + lane % 4 * 2));
    x.dims[i].x *= factor * w.x;
    x.dims[i].y *= factor * w.y;
  }
}

// (cos, sin) of the pairs a lane turns; which pairs depends on rope_halves. Without a branch about
// the loads, and without moving what they bring: either waits for each one before the next.
template <int HD>
struct Angles {
  float2 first[HD / 16];
  float2 second[HD / 16];
};

template <int HD>
__device__ __forceinline__ Angles<HD> load_angles(const Phase& phase, const Shape& shape,
                                                  uint32_t position, uint32_t lane) {
  Angles<HD> angles;
  const bool halves = shape.rope_halves != 0;
  const float2* const from = reinterpret_cast<const float2*>(phase.rope) +
                             static_cast<uint64_t>(position) * (HD / 2) +
                             (halves ? lane % 4 * 2 : lane % 4);
  const uint32_t apart = halves ? 1 : 4;
#pragma unroll
  for (int i = 0; i < HD / 16; ++i) {
    angles.first[i] = angles.second[i] = make_float2(1.0f, 0.0f);
    if (phase.rope != nullptr) {
      angles.first[i] = __ldg(from + i * 8);
      angles.second[i] = __ldg(from + i * 8 + apart);
    }
  }
  return angles;
}

__device__ __forceinline__ void turn(float& a, float& b, float c, float s) {
  const float turned = a * c - b * s;
  b = a * s + b * c;
  a = turned;
}

template <int HD>
__device__ __forceinline__ void turn_head(Head<HD>& x, const Angles<HD>& angles,
                                          uint32_t rope_halves) {
#pragma unroll
  for (int i = 0; i < HD / 16; ++i) {
    const float2 s = angles.first[i];
    const float2 t = angles.second[i];
    if (rope_halves != 0) {
      turn(x.dims[i].x, x.dims[i + HD / 16].x, s.x, s.y);
      turn(x.dims[i].y, x.dims[i + HD / 16].y, t.x, t.y);
    } else {
      turn(x.dims[2 * i].x, x.dims[2 * i].y, s.x, s.y);
      turn(x.dims[2 * i + 1].x, x.dims[2 * i + 1].y, t.x, t.y);
    }
  }
}

template <class Half, int HD>
__device__ __forceinline__ void round_head(Head<HD>& x, uint32_t (&bits)[HD / 8]) {
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    const typename Half::Pair pair = Half::narrow(x.dims[i]);
    bits[i] = bits_of<Half>(pair);
    x.dims[i] = Half::widen(pair);
  }
}

// Row r of the warp stores the dims with i % 8 == r.
template <int HD>
__device__ __forceinline__ void append(std::byte* head, uint32_t position, uint32_t lane,
                                       const uint32_t (&k)[HD / 8], const uint32_t (&v)[HD / 8]) {
  uint16_t* const to = reinterpret_cast<uint16_t*>(head);
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    if (static_cast<uint32_t>(i % 8) != lane / 4) continue;
    const uint32_t dim = i * 8 + lane % 4 * 2;
    *reinterpret_cast<uint32_t*>(to + operand_k_index(HD, position, dim)) = k[i];
    to[operand_v_index(HD, position, dim)] = static_cast<uint16_t>(v[i]);
    to[operand_v_index(HD, position, dim + 1)] = static_cast<uint16_t>(v[i] >> 16);
  }
}

// The token's own keys and values, rounded to what is stored.
template <int HD>
struct Own {
  uint32_t k[HD / 8];
  uint32_t v[HD / 8];
};

// Leaves them in f32 in k and v as well.
template <class Half, int HD>
__device__ __forceinline__ Own<HD> make_own(const Consumer& me, const Phase& phase,
                                            const Shape& shape, const Angles<HD>& angles,
                                            Head<HD>& k, Head<HD>& v) {
  const float* const heads = me.heads();
  k = read_head<HD>(heads, shape.group, me.lane);
  v = read_head<HD>(heads, shape.group + 1, me.lane);
  if (phase.bias != nullptr) norm_head<HD>(k, phase.bias, shape.k_epsilon, me.lane);
  if (phase.rope != nullptr) turn_head<HD>(k, angles, shape.rope_halves);
  Own<HD> own;
  round_head<Half, HD>(k, own.k);
  round_head<Half, HD>(v, own.v);
  return own;
}

// A warp's running softmax: row lane / 4 is a query head, in base 2.
template <int HD>
struct Running {
  float top = -1e30f;
  float sum = 0.0f;  // the lane's share
  float values[HD / 8][4];
  bool own = false;  // the warp begins with the token's own position, and appends it
};

template <class Half, int HD>
struct Query {
  uint4 operand[HD / 16];
};

// Half a slot. With kTail only the first `valid` positions of it count: scores of the others are
// -inf and their V is zeroed, since whatever lies there may be a NaN.
template <class Half, int HD, bool kTail>
__device__ __forceinline__ void attend_half(const Query<Half, HD>& q, const char* slot,
                                            uint32_t half, uint32_t lane, uint32_t valid,
                                            Running<HD>& run) {
  constexpr int kPositions = 2048 / HD;
  const uint4* const keys =
      reinterpret_cast<const uint4*>(slot + half * (HD == 64 ? 8192 : 4096)) + lane;
  const uint4* const vals = keys + (HD == 64 ? 4096 : 8192) / 16;
  float scores[kPositions / 8][4];
#pragma unroll
  for (int t = 0; t < kPositions / 8; ++t) {
    scores[t][0] = scores[t][1] = scores[t][2] = scores[t][3] = 0.0f;
  }
#pragma unroll
  for (int pair = 0; pair < HD / 32; ++pair) {
#pragma unroll
    for (int t = 0; t < kPositions / 8; ++t) {
      const uint4 u = keys[(t * (HD / 32) + pair) * 32];
      Half::multiply(scores[t], q.operand[2 * pair], make_uint2(u.x, u.y));
      Half::multiply(scores[t], q.operand[2 * pair + 1], make_uint2(u.z, u.w));
    }
  }
  float top = run.top;
#pragma unroll
  for (int t = 0; t < kPositions / 8; ++t) {
    scores[t][0] += scores[t][2];
    scores[t][1] += scores[t][3];
    if (kTail) {
      const uint32_t at = t * 8 + lane % 4 * 2;
      if (at >= valid) scores[t][0] = -INFINITY;
      if (at + 1 >= valid) scores[t][1] = -INFINITY;
    }
    top = fmaxf(top, fmaxf(scores[t][0], scores[t][1]));
  }
  top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
  top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
  if (__any_sync(~0u, top > run.top)) {
    const float factor = exp2_approx(run.top - top);
    run.sum *= factor;
    run.top = top;
#pragma unroll
    for (int i = 0; i < HD / 8; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) run.values[i][c] *= factor;
    }
  }
#pragma unroll
  for (int j = 0; j < kPositions / 16; ++j) {
    const float2 p0 =
        make_float2(exp2_approx(scores[2 * j][0] - top), exp2_approx(scores[2 * j][1] - top));
    const float2 p1 = make_float2(exp2_approx(scores[2 * j + 1][0] - top),
                                  exp2_approx(scores[2 * j + 1][1] - top));
    run.sum += (p0.x + p0.y) + (p1.x + p1.y);
    uint4 a;
    a.x = split<Half>(p0, a.y);
    a.z = split<Half>(p1, a.w);
    uint32_t keep0 = 0;
    uint32_t keep1 = 0;
    if (kTail) {
      const uint32_t at = j * 16 + lane % 4 * 2;
      keep0 = (at < valid ? 0xffffu : 0u) | (at + 1 < valid ? 0xffff0000u : 0u);
      keep1 = (at + 8 < valid ? 0xffffu : 0u) | (at + 9 < valid ? 0xffff0000u : 0u);
    }
#pragma unroll
    for (int i = 0; i < HD / 16; ++i) {
      uint4 u = vals[(j * (HD / 16) + i) * 32];
      if (kTail) u = make_uint4(u.x & keep0, u.y & keep1, u.z & keep0, u.w & keep1);
      Half::multiply(run.values[2 * i], a, make_uint2(u.x, u.y));
      Half::multiply(run.values[2 * i + 1], a, make_uint2(u.z, u.w));
    }
  }
}

// q of the CTA's heads as an A operand, and for one warp of the own piece the token's own position,
// taken as the running softmax's first.
template <class Half, int HD>
__device__ __forceinline__ Query<Half, HD> begin_attention(Consumer& me, const Phase& phase,
                                                           const Shape& shape, Running<HD>& run,
                                                           Own<HD>& kept) {
  const uint32_t position = me.args.position;
  const uint32_t row = me.lane / 4;
  // The pair whose turn would come next has the fewest slots to eat.
  const Work& work = me.works[me.watch.phase];
  const bool own_piece = work.first == me.own_piece;
  run.own = own_piece && me.half == 0 && (work.begin + work.count) % kPairs == me.warp / 2;

  const Angles<HD> angles = load_angles<HD>(phase, shape, position, me.lane);
  take_heads<HD>(me, phase, shape, own_piece);
  // Rows beyond the group take its last head again and are zeroed below.
  Head<HD> q = read_head<HD>(me.heads(), min(row, shape.group - 1), me.lane);
  if (phase.norm != nullptr) norm_head<HD>(q, phase.norm, shape.epsilon, me.lane);
  if (phase.rope != nullptr) turn_head<HD>(q, angles, shape.rope_halves);
  // Scores in base 2 from here on.
  const float scale = row < shape.group ? shape.scale * 1.44269504f : 0.0f;
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    q.dims[i].x *= scale;
    q.dims[i].y *= scale;
  }
#pragma unroll
  for (int i = 0; i < HD / 8; ++i) {
    run.values[i][0] = run.values[i][1] = run.values[i][2] = run.values[i][3] = 0.0f;
  }
  if (run.own) {
    Head<HD> k;
    Head<HD> v;
    kept = make_own<Half, HD>(me, phase, shape, angles, k, v);
    float score = 0.0f;
#pragma unroll
    for (int i = 0; i < HD / 8; ++i) {
      score += q.dims[i].x * k.dims[i].x + q.dims[i].y * k.dims[i].y;
      run.values[i][0] = v.dims[i].x;
      run.values[i][1] = v.dims[i].y;
    }
    score += __shfl_xor_sync(~0u, score, 1);
    score += __shfl_xor_sync(~0u, score, 2);
    run.top = score;
    run.sum = me.lane % 4 == 0 ? 1.0f : 0.0f;
  }
  Query<Half, HD> query;
#pragma unroll
  for (int i = 0; i < HD / 16; ++i) {
    query.operand[i].x = split<Half>(q.dims[2 * i], query.operand[i].y);
    query.operand[i].z = split<Half>(q.dims[2 * i + 1], query.operand[i].w);
  }
  return query;
}

// The piece: its slots, then the eight warps' results combined and published.
template <class Half, int HD>
__device__ __forceinline__ void attend_piece(Consumer& me, Place& place, const Phase& phase,
                                             const Shape& shape) {
  constexpr uint32_t kPositions = 2048 / HD;
  constexpr uint32_t kStride = HD + 2;
  Running<HD> run;
  Own<HD> own;
  const Query<Half, HD> query = begin_attention<Half, HD>(me, phase, shape, run, own);
  me.stamp(1);
  const uint32_t piece = me.works[me.watch.phase].first;
  const uint32_t n = me.works[me.watch.phase].count;
  for (; place.next < place.phase_begin + n; place.next += kPairs) {
    const uint32_t j = place.next - place.phase_begin;
    if (me.thread == 0) *me.left = n - j;
    const uint32_t first = (piece + j * shape.pieces) * 2 * kPositions + me.half * kPositions;
    barrier_wait(&me.ring.full[place.slot], place.parity, me.watch, Awaited::kCopyLanded);
    const char* const slot = me.ring.slots + place.slot * kSlotBytes;
    const uint32_t position = me.args.position;
    if (first + kPositions <= position) {
      attend_half<Half, HD, false>(query, slot, me.half, me.lane, kPositions, run);
    } else if (first < position) {
      attend_half<Half, HD, true>(query, slot, me.half, me.lane, position - first, run);
    }
    release(me.ring, place);
  }
  me.stamp(2);
  place.phase_begin += n;

  run.sum += __shfl_xor_sync(~0u, run.sum, 1);
  run.sum += __shfl_xor_sync(~0u, run.sum, 2);
  if (me.lane / 4 < shape.group) {
    float* const to = me.attention + (me.warp * shape.group + me.lane / 4) * kStride;
    if (me.lane % 4 == 0) *reinterpret_cast<float2*>(to) = make_float2(run.top, run.sum);
#pragma unroll
    for (int i = 0; i < HD / 8; ++i) {
      *reinterpret_cast<float2*>(to + 2 + i * 8 + me.lane % 4 * 2) =
          make_float2(run.values[i][0] + run.values[i][2], run.values[i][1] + run.values[i][3]);
    }
  }
  std::byte* const cache = const_cast<std::byte*>(phase.stream) + me.kv_head * shape.head_bytes;
  // With 128 dims they do not stay in registers through the loop, and are made again.
  if (HD == 128 && run.own) {
    Head<HD> k;
    Head<HD> v;
    const Angles<HD> angles = load_angles<HD>(phase, shape, me.args.position, me.lane);
    own = make_own<Half, HD>(me, phase, shape, angles, k, v);
    append<HD>(cache, me.args.position, me.lane, own.k, own.v);
  }
  me.sync();
  uint32_t* const out =
      me.args.words + shape.extra.offset + static_cast<uint64_t>(me.cta) * partial_words(shape);
  const uint32_t tag = me.tag(shape.extra, phase.extra_tag);
  for (uint32_t i = me.thread; i < shape.group * HD; i += kConsumerThreads) {
    const uint32_t g = i / HD;
    const uint32_t d = i % HD;
    float tops[kConsumerWarps];
    float top = -1e30f;
#pragma unroll
    for (uint32_t w = 0; w < kConsumerWarps; ++w) {
      tops[w] = me.attention[(w * shape.group + g) * kStride];
      top = fmaxf(top, tops[w]);
    }
    top = untagged(__float_as_uint(top));  // as the mergers will see it
    float sum = 0.0f;
    float value = 0.0f;
#pragma unroll
    for (uint32_t w = 0; w < kConsumerWarps; ++w) {
      const float* const from = me.attention + (w * shape.group + g) * kStride;
      const float factor = exp2_approx(tops[w] - top);
      sum += factor * from[1];
      value += factor * from[2 + d];
    }
    uint32_t* const to = out + g * (kPartialHeader + HD);
    publish(to + kPartialHeader + d, value, tag);
    if (d == 0) {
      publish(to, top, tag);
      publish(to + 1, sum, tag);
    }
  }
  me.stamp(3);
  // Nobody reads it in this launch.
  if (HD == 64 && run.own) append<HD>(cache, me.args.position, me.lane, own.k, own.v);
}

// kMergeDims dims of one query head over all pieces: a lane has 8 dims of every 16th piece.
template <int HD>
__device__ __forceinline__ void merge(const Consumer& me, const Phase& phase, const Shape& shape,
                                      uint32_t item) {
  constexpr int kTurns = kMaxPieces / 16;
  const uint32_t head = item / (HD / kMergeDims);
  const uint32_t dim = item % (HD / kMergeDims) * kMergeDims + me.lane / 16 * 8;
  const uint32_t kv_head = head / shape.group;
  const uint32_t stride = partial_words(shape);
  const uint32_t tag = me.tag(shape.extra, phase.extra_tag);
  const uint32_t* const from = me.args.words + shape.extra.offset +
                               static_cast<uint64_t>(kv_head * shape.pieces) * stride +
                               head % shape.group * (kPartialHeader + HD);
  uint2 header[kTurns];
  uint4 words[kTurns][2];
  for (uint32_t turns = 0;;) {
    uint32_t missing = 0;
#pragma unroll
    for (uint32_t t = 0; t < kTurns; ++t) {
      const uint32_t piece = me.lane % 16 + t * 16;
      if (piece < shape.pieces) {
        const uint32_t* const at = from + piece * stride;
        header[t] = load_words2(at);
        words[t][0] = load_words4(at + kPartialHeader + dim);
        words[t][1] = load_words4(at + kPartialHeader + dim + 4);
      }
    }
#pragma unroll
    for (uint32_t t = 0; t < kTurns; ++t) {
      if (me.lane % 16 + t * 16 < shape.pieces) {
        missing |= wrong(header[t], tag) | wrong(words[t][0], tag) | wrong(words[t][1], tag);
      }
    }
    if (__all_sync(~0u, missing == 0)) break;
    if (__any_sync(~0u, give_up(me.watch, turns, Awaited::kPartials))) break;
    // No pause: only some 128 warps of the card ask, and everybody waits for their answer.
  }
  float top = -1e30f;
#pragma unroll
  for (uint32_t t = 0; t < kTurns; ++t) {
    if (me.lane % 16 + t * 16 < shape.pieces) top = fmaxf(top, untagged(header[t].x));
  }
#pragma unroll
  for (int o = 8; o != 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  float sum = 0.0f;
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = 0.0f;
#pragma unroll
  for (uint32_t t = 0; t < kTurns; ++t) {
    if (me.lane % 16 + t * 16 >= shape.pieces) continue;
    const float factor = exp2_approx(untagged(header[t].x) - top);
    sum += factor * untagged(header[t].y);
    const uint32_t w[8] = {words[t][0].x, words[t][0].y, words[t][0].z, words[t][0].w,
                           words[t][1].x, words[t][1].y, words[t][1].z, words[t][1].w};
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] += factor * untagged(w[i]);
  }
#pragma unroll
  for (int o = 8; o != 0; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  // Halves the vector while the lanes fold: a lane ends with dim lane % 8.
#pragma unroll
  for (int w = 4; w != 0; w >>= 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i >= w) continue;
      const bool up = (me.lane & w) != 0;
      const float send = up ? v[i] : v[i + w];
      const float keep = up ? v[i + w] : v[i];
      v[i] = keep + __shfl_xor_sync(~0u, send, w);
    }
  }
  v[0] += __shfl_xor_sync(~0u, v[0], 8);
  // Lanes 8 apart hold the same: each of them serves half of the replicas.
  static_assert(kReplicas == 4);
  uint32_t* const to = me.args.words + (me.lane & 8u) / 4 * me.args.n_words + shape.out.offset +
                       head * HD + dim + me.lane % 8;
  const uint32_t out_tag = me.tag(shape.out, phase.out_tag);
  publish(to, v[0] / sum, out_tag);
  publish(to + me.args.n_words, v[0] / sum, out_tag);
}

template <class Half, int HD>
__device__ __forceinline__ void attend(Consumer& me, Place& place, uint4 (&held)[16]) {
  const Phase& phase = me.phases[me.watch.phase];
  const Shape& shape = me.shapes[phase.shape];
  // Nothing is held across this phase: says so to the register allocator.
#pragma unroll
  for (int i = 0; i < 16; ++i) held[i] = make_uint4(0, 0, 0, 0);
  place.limit = me.works[me.watch.phase].limit;
  if (me.cta < shape.n_kv_heads * shape.pieces) {
    attend_piece<Half, HD>(me, place, phase, shape);
  }
  const uint32_t from_end = kConsumerWarps - 1 - me.warp;
  for (uint32_t item = me.cta + from_end * gridDim.x; item < merge_items(shape);
       item += kConsumerWarps * gridDim.x) {
    merge<HD>(me, phase, shape, item);
  }
  fetch(me.ring, place, me.half, me.watch, held);
}

}  // namespace godwit::cuda::persistent
