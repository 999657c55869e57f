#include <array>
#include <cmath>

#include "backend/cpu/walker.h"

namespace godwit::cpu {
namespace {

// log(1 + e^x) without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct KeyHead {
  Channels q;
  Channels k;
};

// Where kByKeyHead holds a key head: [q | k | v of its heads | z of its heads].
size_t group_of(const program::Recurrent& s, size_t key_head) {
  return key_head * 2 * (1 + s.heads_per_key()) * s.head_dim;
}

KeyHead key_head_at(const program::Recurrent& s, size_t head) {
  const size_t d = s.head_dim;
  const size_t keys = s.n_key_heads * d;
  KeyHead out{.q = {.channel = head * d, .source = head * d, .n = d},
              .k = {.channel = keys + head * d, .source = keys + head * d, .n = d}};
  if (s.layout == program::Recurrent::Layout::kSplit) return out;
  out.q.source = group_of(s, head);
  out.k.source = group_of(s, head) + d;
  return out;
}

// Value head number i of a key head.
struct ValueHead {
  size_t index = 0;
  Channels v;
  size_t z = 0;  // of the row that holds z
  size_t b = 0;  // of the row that holds b
  size_t a = 0;  // of the row that holds a
};

ValueHead value_head_at(const program::Recurrent& s, size_t key_head, size_t i) {
  const size_t d = s.head_dim;
  const size_t per_key = s.heads_per_key();
  const size_t h = s.head_of(static_cast<uint32_t>(key_head), static_cast<uint32_t>(i));
  const size_t channel = (2 * s.n_key_heads + h) * d;
  ValueHead out{
      .index = h, .v = {.channel = channel, .source = channel, .n = d}, .z = h * d, .b = h, .a = h};
  if (s.layout == program::Recurrent::Layout::kByKeyHead) {
    out.v.source = group_of(s, key_head) + (2 + i) * d;
    out.z = group_of(s, key_head) + (2 + per_key + i) * d;
  }
  if (!s.a) {
    out.b = key_head * 2 * per_key + i;
    out.a = out.b + per_key;
  }
  return out;
}

}  // namespace

// Key heads are independent of each other, so threads share them out and walk all rows of one
// before the next: its matrices then stay in the second-level cache.
void Walker::execute(const program::Recurrent& s) {
  const Share heads = share_of(s.n_key_heads, 1, thread_, n_threads_);
  for (size_t head = heads.begin; head < heads.end; ++head) {
    settle(s, head);
    walk_chunks(s, head);
    keep_last_rows(s, key_head_at(s, head).q);
    keep_last_rows(s, key_head_at(s, head).k);
    for (size_t i = 0; i < s.heads_per_key(); ++i) {
      keep_last_rows(s, value_head_at(s, head, i).v);
    }
  }
}

// Chunks whose rows could have been taken back, and have not been.
void Walker::settle(const program::Recurrent& s, size_t key_head) {
  const DeltaState& state = context_.states[s.state.value];
  const auto first = static_cast<size_t>(call_.rows.front().position.value);
  for (size_t chunk = context_.span_before.settled / kDeltaChunk; chunk < first / kDeltaChunk;
       ++chunk) {
    fold(s, key_head, chunk, settled_matrices(s, key_head));
    clear(s, key_head, state.log(chunk));
  }
}

// The matrices of the value heads of a key head lie one after the other.
float* Walker::settled_matrices(const program::Recurrent& s, size_t key_head) const {
  const size_t d = s.head_dim;
  return context_.states[s.state.value].matrix.data() + key_head * s.heads_per_key() * d * d;
}

void Walker::walk_chunks(const program::Recurrent& s, size_t key_head) {
  const DeltaState& state = context_.states[s.state.value];
  const size_t n_floats = s.heads_per_key() * s.head_dim * s.head_dim;
  const auto first = static_cast<size_t>(call_.rows.front().position.value);
  float* const settled = settled_matrices(s, key_head);
  float* matrices = settled;
  for (size_t t = 0; t < n_rows();) {
    const size_t chunk = (first + t) / kDeltaChunk;
    const size_t slot = (first + t) % kDeltaChunk;
    const size_t n = std::min(kDeltaChunk - slot, n_rows() - t);
    walk_key_head(s, key_head, {.first = t, .chunk = chunk, .slot = slot, .n = n}, matrices);
    t += n;
    if (slot + n < kDeltaChunk) return;
    if ((chunk + 1) * kDeltaChunk <= context_.span.settled) {
      fold(s, key_head, chunk, settled);
      clear(s, key_head, state.log(chunk));
    } else if (t < n_rows()) {
      // Rows of this chunk may be taken back: those of the next one go on from a copy.
      float* const tried = head_area(s).tried;
      if (matrices == settled) std::copy_n(settled, n_floats, tried);
      matrices = tried;
      fold(s, key_head, chunk, matrices);
    }
  }
}

void Walker::fold(const program::Recurrent& s, size_t key_head, size_t chunk, float* matrices) {
  const size_t d = s.head_dim;
  for (size_t i = 0; i < s.heads_per_key(); ++i) {
    fold_delta_chunk(call_.ops, d, delta_head(s, key_head, i, chunk, matrices),
                     head_area(s).scratch);
  }
}

// Value head number i of a key head.
DeltaHead Walker::delta_head(const program::Recurrent& s, size_t key_head, size_t i, size_t chunk,
                             float* matrices) const {
  const DeltaLog& log = context_.states[s.state.value].log(chunk);
  const size_t d = s.head_dim;
  const size_t h = key_head * s.heads_per_key() + i;  // as program::State orders them
  return {.keys = log.keys.data() + key_head * d * kDeltaChunk,
          .matrix = matrices + i * d * d,
          .changes = log.changes.data() + h * kDeltaChunk * d,
          .log_decays = log.log_decays.data() + h * kDeltaChunk};
}

// Nothing stays of a folded chunk, so that a state's bytes are a function of the tokens alone.
void Walker::clear(const program::Recurrent& s, size_t key_head, const DeltaLog& log) {
  const size_t d = s.head_dim;
  const size_t heads = s.heads_per_key();
  std::fill_n(log.keys.data() + key_head * d * kDeltaChunk, d * kDeltaChunk, 0.0f);
  std::fill_n(log.changes.data() + key_head * heads * kDeltaChunk * d, heads * kDeltaChunk * d,
              0.0f);
  std::fill_n(log.log_decays.data() + key_head * heads * kDeltaChunk, heads * kDeltaChunk, 0.0);
}

void Walker::walk_key_head(const program::Recurrent& s, size_t key_head, const ChunkRows& rows,
                           float* matrices) {
  const DeltaState& state = context_.states[s.state.value];
  const size_t d = s.head_dim;
  const size_t heads = s.heads_per_key();
  const DeltaHeadArea area = head_area(s);
  const KeyHead places = key_head_at(s, key_head);
  for (size_t r = 0; r < rows.n; ++r) {
    float* const k = area.keys_queries + r * d;
    float* const q = area.keys_queries + (rows.n + r) * d;
    convolve(s, places.k, rows.first + r, k);
    convolve(s, places.q, rows.first + r, q);
    call_.ops.unit_length(k, s.length_epsilon, k, d);
    call_.ops.unit_length(q, s.length_epsilon, q, d);
  }
  const DeltaRows delta{
      .keys_queries = area.keys_queries, .dots = area.dots, .slot = rows.slot, .n = rows.n, .d = d};
  float* const keys = state.log(rows.chunk).keys.data() + key_head * d * kDeltaChunk;
  join_keys(call_.ops, delta, keys, area.dots);
  for (size_t i = 0; i < heads; ++i) {
    const ValueHead head = value_head_at(s, key_head, i);
    for (size_t r = 0; r < rows.n; ++r) {
      convolve(s, head.v, rows.first + r, area.values + (r * heads + i) * d);
    }
    std::array<double, kDeltaChunk> log_decays;
    read_gates(s, {.head = head.index, .b = head.b, .a = head.a}, rows, log_decays, area.betas);
    walk_delta_rows(call_.ops, delta,
                    {.v = area.values + i * d,
                     .v_stride = heads * d,
                     .log_decays = log_decays.data(),
                     .betas = area.betas},
                    delta_head(s, key_head, i, rows.chunk, matrices), area.scratch,
                    buffer(s.out).row(rows.first) + head.index * d, buffer(s.out).stride);
    for (size_t t = rows.first; t < rows.first + rows.n; ++t) {
      float* const out = buffer(s.out).row(t) + head.index * d;
      const float* const z = buffer(s.z.value_or(s.qkv)).row(t) + head.z;
      call_.ops.scale(out, static_cast<float>(1.0 / std::sqrt(static_cast<double>(d))), out, d);
      call_.ops.rms_norm(out, call_.weights.vector(s.norm.weight), s.norm.epsilon, out, d);
      call_.ops.silu_mul(z, out, out, d);
    }
  }
}

// g and beta of a value head's rows.
void Walker::read_gates(const program::Recurrent& s, const GatePlace& place, const ChunkRows& rows,
                        std::span<double> log_decays, float* betas) const {
  const auto dt_bias = static_cast<double>(call_.weights.vector(s.dt_bias)[place.head]);
  const auto decay = static_cast<double>(call_.weights.vector(s.decay)[place.head]);
  for (size_t r = 0; r < rows.n; ++r) {
    const size_t t = rows.first + r;
    const auto a = static_cast<double>(buffer(s.a.value_or(s.b)).row(t)[place.a]);
    const auto b = static_cast<double>(buffer(s.b).row(t)[place.b]);
    log_decays[r] = softplus(a + dt_bias) * decay;
    betas[r] = static_cast<float>(1.0 / (1.0 + std::exp(-b)));
  }
}

// Some channels of row t after the convolution.
void Walker::convolve(const program::Recurrent& s, const Channels& channels, size_t t,
                      float* out) const {
  const DeltaState& state = context_.states[s.state.value];
  const program::State& shape = call_.program.states[s.state.value];
  const float* const taps = call_.weights.vector(s.conv);
  std::array<const float*, kMaxTaps> rows;
  std::array<const float*, kMaxTaps> row_taps;
  for (size_t i = 0; i < shape.taps; ++i) {
    // Rows before the call's first are in the state.
    const size_t back = shape.taps - 1 - i;
    rows[i] = back <= t
                  ? buffer(s.qkv).row(t - back) + channels.source
                  : state.rows.data() + (n_kept_rows() + t + i) * shape.channels + channels.channel;
    row_taps[i] = taps + i * shape.channels + channels.channel;
  }
  call_.ops.convolve(rows.data(), row_taps.data(), shape.taps, out, channels.n);
}

// The raw rows of some channels for the next call: the last taps - 1 before what may be taken back,
// oldest first, then what may be.
void Walker::keep_last_rows(const program::Recurrent& s, const Channels& channels) {
  const DeltaState& state = context_.states[s.state.value];
  const program::State& shape = call_.program.states[s.state.value];
  const size_t before = shape.taps - 1;
  const size_t n_tentative = context_.span.end - context_.span.settled;
  for (size_t i = 0; i < before + n_tentative; ++i) {
    // Row i of the new state is this one of the old state's, those kept taken in, and the call's.
    const size_t from = i + n_rows() - n_tentative;
    const float* const row =
        from < before
            ? state.rows.data() + (n_kept_rows() + from) * shape.channels + channels.channel
            : buffer(s.qkv).row(from - before) + channels.source;
    std::copy_n(row, channels.n, state.rows.data() + i * shape.channels + channels.channel);
  }
}

}  // namespace godwit::cpu
