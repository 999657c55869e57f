#include <array>
#include <cmath>

#include "backend/cpu/walker.h"

namespace godwit::cpu {
namespace {

constexpr float kLengthEpsilon = 1e-6f;

// log(1 + e^x) without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// One stretch of the convolution's channels: q or k of a key head, or v of its value heads.
struct Stretch {
  size_t channel = 0;  // of the convolution
  size_t source = 0;   // of the row in the step's buffer
  size_t n = 0;
};

struct KeyHead {
  Stretch q;
  Stretch k;
  Stretch v;
  size_t z = 0;  // of the row that holds z
};

KeyHead key_head_of(const program::Recurrent& s, size_t head) {
  const size_t d = s.head_dim;
  const size_t keys = s.n_key_heads * d;
  const size_t share = s.n_heads / s.n_key_heads * d;
  KeyHead out{
      .q = {.channel = head * d, .source = head * d, .n = d},
      .k = {.channel = keys + head * d, .source = keys + head * d, .n = d},
      .v = {.channel = 2 * keys + head * share, .source = 2 * keys + head * share, .n = share},
      .z = head * share};
  if (s.layout == program::Recurrent::Layout::kSplit) return out;
  const size_t group = head * 2 * (d + share);
  out.q.source = group;
  out.k.source = group + d;
  out.v.source = group + 2 * d;
  out.z = group + 2 * d + share;
  return out;
}

}  // namespace

// Key heads are independent of each other, so threads share them out and walk all rows of one
// before the next: its matrices then stay in the second-level cache.
void Walker::execute(const program::Recurrent& s) {
  const Share heads = share_of(s.n_key_heads, 1, thread_, n_threads_);
  for (size_t head = heads.begin; head < heads.end; ++head) walk_key_head(s, head);
}

void Walker::walk_key_head(const program::Recurrent& s, size_t key_head) {
  const DeltaState& state = context_.states[s.state.value];
  const program::State& shape = call_.program.states[s.state.value];
  const KeyHead head = key_head_of(s, key_head);
  const size_t d = s.head_dim;
  const size_t heads = s.n_heads / s.n_key_heads;
  const float* const taps = call_.weights.vector(s.conv);
  const float* const dt_bias = call_.weights.vector(s.dt_bias);
  const float* const decay = call_.weights.vector(s.decay);
  float* const q = context_.heads[thread_].data();
  float* const k = q + d;
  float* const v = k + d;

  const auto convolve = [&](const Stretch& stretch, size_t t, float* out) {
    std::array<const float*, kMaxTaps> rows;
    std::array<const float*, kMaxTaps> row_taps;
    for (size_t i = 0; i < shape.taps; ++i) {
      // Rows before the call's first are in the state.
      const size_t back = shape.taps - 1 - i;
      rows[i] = back <= t ? buffer(s.qkv).row(t - back) + stretch.source
                          : state.rows.data() + (t + i) * shape.channels + stretch.channel;
      row_taps[i] = taps + i * shape.channels + stretch.channel;
    }
    call_.ops.convolve(rows.data(), row_taps.data(), shape.taps, out, stretch.n);
  };

  for (size_t t = 0; t < n_rows(); ++t) {
    convolve(head.q, t, q);
    convolve(head.k, t, k);
    convolve(head.v, t, v);
    call_.ops.unit_length(q, kLengthEpsilon, q, d);
    call_.ops.unit_length(k, kLengthEpsilon, k, d);
    const float* const ba = buffer(s.ba).row(t) + key_head * 2 * heads;
    const float* const z = buffer(s.z.value_or(s.qkv)).row(t) + head.z;
    for (size_t i = 0; i < heads; ++i) {
      const size_t h = key_head * heads + i;
      const auto a = static_cast<double>(ba[heads + i]) + static_cast<double>(dt_bias[h]);
      const auto b = static_cast<double>(ba[i]);
      const double g = softplus(a) * static_cast<double>(decay[h]);
      float* const out = buffer(s.out).row(t) + h * d;
      call_.ops.delta_rule({.q = q,
                            .k = k,
                            .v = v + i * d,
                            .decay = static_cast<float>(std::exp(g)),
                            .beta = static_cast<float>(1.0 / (1.0 + std::exp(-b)))},
                           state.matrix.data() + h * d * d, out, d);
      call_.ops.scale(out, static_cast<float>(1.0 / std::sqrt(static_cast<double>(d))), out, d);
      call_.ops.rms_norm(out, call_.weights.vector(s.norm.weight), s.norm.epsilon, out, d);
      call_.ops.silu_mul(z + i * d, out, out, d);
    }
  }
  for (const Stretch& stretch : {head.q, head.k, head.v}) {
    keep_last_rows(s, stretch.channel, stretch.source, stretch.n);
  }
}

// Moves the last taps - 1 raw rows of some channels into the state, oldest first.
void Walker::keep_last_rows(const program::Recurrent& s, size_t channel, size_t source, size_t n) {
  const DeltaState& state = context_.states[s.state.value];
  const program::State& shape = call_.program.states[s.state.value];
  const size_t kept = shape.taps - 1;
  for (size_t i = 0; i < kept; ++i) {
    // Row i of the new state is row i + n_rows() of the old one followed by the call's.
    const size_t from = i + n_rows();
    const float* const row = from < kept ? state.rows.data() + from * shape.channels + channel
                                         : buffer(s.qkv).row(from - kept) + source;
    std::copy_n(row, n, state.rows.data() + i * shape.channels + channel);
  }
}

}  // namespace godwit::cpu
