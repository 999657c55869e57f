#include <array>
#include <cmath>

#include "backend/cpu/attention.h"
#include "backend/cpu/walker.h"

namespace godwit::cpu {
namespace {

// Whether a norm spans the heads of a row, so that it must be over before heads are turned.
bool spans_heads(const std::optional<program::RmsNorm>& norm, size_t head_dim) {
  return norm && norm->weight.cols != head_dim;
}

}  // namespace

void Walker::execute(const program::Attend& s) {
  if (has_row_norm(s)) {
    norm_head_rows(s);
    call_.pool.barrier();
  }
  turn_and_store(s);
  call_.pool.barrier();
  const AttentionArgs args{.q = context_.turned_q.data,
                           .q_stride = context_.turned_q.stride,
                           .cache = context_.kvs[s.kv.value],
                           .n_heads = s.n_heads,
                           .first_position = static_cast<size_t>(call_.rows.front().position.value),
                           .n_tokens = n_rows(),
                           .scale = s.scale,
                           .softcap = s.softcap,
                           .window = s.window,
                           .block = context_.attention_block,
                           .sinks = s.sinks ? call_.weights.vector(*s.sinks) : nullptr,
                           .scratch = context_.attention,
                           .out = buffer(s.out).data,
                           .out_stride = buffer(s.out).stride};
  attention_run(args, thread_, n_threads_, call_.isa);
  call_.pool.barrier();
  attention_merge(args, thread_, n_threads_, call_.isa);
  if (s.gated) {
    call_.pool.barrier();
    multiply_by_gates(s);
  }
}

void Walker::multiply_by_gates(const program::Attend& s) {
  const Share items = share_of(n_rows() * s.n_heads, 1, thread_, n_threads_);
  for (size_t item = items.begin; item < items.end; ++item) {
    const size_t t = item / s.n_heads;
    const size_t head = item % s.n_heads;
    call_.ops.sigmoid_mul(buffer(s.q).row(t) + (2 * head + 1) * s.head_dim,
                          buffer(s.out).row(t) + head * s.head_dim, s.head_dim);
  }
}

bool Walker::has_row_norm(const program::Attend& s) {
  return spans_heads(s.q_norm, s.head_dim) || spans_heads(s.k_norm, s.head_dim);
}

// Such norms, of queries into turned_q and of keys into `gate`, which no step holds on to.
void Walker::norm_head_rows(const program::Attend& s) {
  const Share items = share_of(2 * n_rows(), 1, thread_, n_threads_);
  for (size_t item = items.begin; item < items.end; ++item) {
    const size_t t = item / 2;
    const bool is_q = item % 2 == 0;
    const std::optional<program::RmsNorm>& norm = is_q ? s.q_norm : s.k_norm;
    if (!spans_heads(norm, s.head_dim)) continue;
    call_.ops.rms_norm(buffer(is_q ? s.q : s.k).row(t), call_.weights.vector(norm->weight),
                       norm->epsilon, (is_q ? context_.turned_q : context_.gate).row(t),
                       norm->weight.cols);
  }
}

// Norms and turns this thread's share of queries into turned_q, and of keys into the cache, with
// values.
void Walker::turn_and_store(const program::Attend& s) {
  const size_t heads = s.n_heads + s.n_kv_heads;
  const Share items = share_of(n_rows() * heads, 1, thread_, n_threads_);
  for (size_t item = items.begin; item < items.end; ++item) {
    const size_t t = item / heads;
    const size_t head = item % heads;
    if (head < s.n_heads) {
      turn_query(s, t, head);
    } else {
      store_key(s, t, head - s.n_heads);
    }
  }
}

void Walker::turn_query(const program::Attend& s, size_t t, size_t head) {
  const BufferView& from = spans_heads(s.q_norm, s.head_dim) ? context_.turned_q : buffer(s.q);
  float* const out = context_.turned_q.row(t) + head * s.head_dim;
  turn(s, t, s.q_norm, from.row(t) + (s.gated ? 2 * head : head) * s.head_dim, out);
  if (!s.q_scale) return;
  const auto blocks = static_cast<uint64_t>(call_.rows[t].position.value) / s.q_scale->length;
  const double factor = 1.0 + s.q_scale->beta * std::log1p(static_cast<double>(blocks));
  call_.ops.scale(out, static_cast<float>(factor), out, s.head_dim);
}

void Walker::store_key(const program::Attend& s, size_t t, size_t kv_head) {
  const BufferView& from = spans_heads(s.k_norm, s.head_dim) ? context_.gate : buffer(s.k);
  alignas(64) std::array<float, kMaxHeadDim> key;
  turn(s, t, s.k_norm, from.row(t) + kv_head * s.head_dim, key.data());
  kv_store(context_.kvs[s.kv.value], kv_head, static_cast<size_t>(call_.rows[t].position.value),
           key.data(), buffer(s.v).row(t) + kv_head * s.head_dim, call_.isa);
}

// One head at its row's position, after its own norm if it has one; out may be x.
void Walker::turn(const program::Attend& s, size_t t, const std::optional<program::RmsNorm>& norm,
                  const float* x, float* out) {
  const program::Rope& rope = call_.program.ropes[s.rope.value];
  const float* const cosines = context_.angles[s.rope.value].row(t);
  if (norm && !spans_heads(norm, s.head_dim)) {
    call_.ops.rms_norm(x, call_.weights.vector(norm->weight), norm->epsilon, out, s.head_dim);
    x = out;
  }
  const auto turn_pairs =
      s.pairs == program::RopePairs::kAdjacent ? call_.ops.rope_adjacent : call_.ops.rope_halves;
  turn_pairs(x, cosines, cosines + rope.n_rot / 2, out, rope.n_rot, s.head_dim);
}

}  // namespace godwit::cpu
