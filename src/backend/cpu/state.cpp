#include "backend/cpu/state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cpu/attention.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

using backend::PositionRange;

// Calls move(cache, head, position, key row, value row) for everything in the range, heads outside
// positions, so that a tile stays in the nearest cache while its positions are walked.
template <class Bytes, class Move>
void walk(const Context& context, PositionRange range, uint64_t position_bytes, Bytes* bytes,
          const Move& move) {
  uint64_t layer = 0;
  for (const KvCache& cache : context.kvs) {
    const uint64_t k_row = row_bytes(cache.k_type, cache.head_dim);
    const uint64_t v_row = row_bytes(cache.v_type, cache.head_dim);
    const uint64_t values = layer + cache.n_kv_heads * k_row;
    for (size_t head = 0; head < cache.n_kv_heads; ++head) {
      for (uint64_t position = range.begin; position < range.end; ++position) {
        Bytes* const at = bytes + (position - range.begin) * position_bytes;
        move(cache, head, position, at + layer + head * k_row, at + values + head * v_row);
      }
    }
    layer = values + cache.n_kv_heads * v_row;
  }
}

std::span<std::byte> take(std::span<std::byte>& rest, size_t bytes) {
  const std::span<std::byte> part = rest.first(bytes);
  rest = rest.subspan(bytes);
  return part;
}

// Bytes of a chunk's log of [n, slots, ...], to and from slots of `inner` bytes.
struct LogPart {
  std::span<std::byte> bytes;
  size_t n_outer;
  size_t inner;
};

std::array<LogPart, 3> parts_of(const DeltaLog& log, const program::State& shape) {
  const auto bytes = [](auto part) { return std::as_writable_bytes(part); };
  return {LogPart{bytes(log.keys), size_t{shape.n_key_heads()} * shape.head_dim, sizeof(float)},
          LogPart{bytes(log.changes), shape.n_heads, shape.head_dim * sizeof(float)},
          LogPart{bytes(log.log_decays), shape.n_heads, sizeof(double)}};
}

// The raw rows before a position.
std::span<std::byte> rows_before(const DeltaState& state, const program::State& shape,
                                 size_t n_after_settled) {
  return std::as_writable_bytes(
      state.rows.subspan(n_after_settled * shape.channels, shape.conv_floats()));
}

// What the rows of a chunk before `slot` left; nothing of those after.
void export_log(const DeltaLog& log, const program::State& shape, size_t slot,
                std::span<std::byte>& to) {
  for (const LogPart& part : parts_of(log, shape)) {
    const std::span<std::byte> out = take(to, part.bytes.size());
    std::ranges::fill(out, std::byte{0});
    for (size_t i = 0; i < part.n_outer; ++i) {
      const size_t at = i * kDeltaChunk * part.inner;
      std::memcpy(out.data() + at, part.bytes.data() + at, slot * part.inner);
    }
  }
}

// The state of a layer as it is after `end` positions, the chunks that end before then folded in.
void export_layer(const DeltaState& state, const program::State& shape, const VectorOps& ops,
                  DeltaSpan span, std::span<std::byte>& to) {
  const std::span<std::byte> rows = rows_before(state, shape, span.end - span.settled);
  std::memcpy(take(to, rows.size()).data(), rows.data(), rows.size());
  const size_t d = shape.head_dim;
  std::vector<float> matrices(state.matrix.begin(), state.matrix.end());
  std::vector<float> scratch(delta_scratch_floats(d));
  const size_t last = span.end / kDeltaChunk;
  for (size_t chunk = span.settled / kDeltaChunk; chunk < last; ++chunk) {
    const DeltaLog& log = state.log(chunk);
    for (size_t h = 0; h < shape.n_heads; ++h) {
      const size_t key_head = h / (shape.n_heads / shape.n_key_heads());
      fold_delta_chunk(ops, d,
                       {.keys = log.keys.data() + key_head * d * kDeltaChunk,
                        .matrix = matrices.data() + h * d * d,
                        .changes = log.changes.data() + h * kDeltaChunk * d,
                        .log_decays = log.log_decays.data() + h * kDeltaChunk},
                       scratch.data());
    }
  }
  const auto bytes = std::as_bytes(std::span(matrices));
  std::memcpy(take(to, bytes.size()).data(), bytes.data(), bytes.size());
  export_log(state.log(last), shape, span.end % kDeltaChunk, to);
}

void import_layer(const DeltaState& state, const program::State& shape, size_t end,
                  std::span<const std::byte>& from) {
  const auto copy = [&](std::span<std::byte> to) {
    std::memcpy(to.data(), from.data(), to.size());
    from = from.subspan(to.size());
  };
  copy(rows_before(state, shape, 0));
  copy(std::as_writable_bytes(state.matrix));
  for (const LogPart& part : parts_of(state.log(end / kDeltaChunk), shape)) copy(part.bytes);
}

void check_range(const Context& context, PositionRange range, bool fits) {
  check(range.end <= context.settings.n_positions, "state of positions beyond the context");
  check(fits, "a state of another size");
}

}  // namespace

backend::StateShape state_shape(const program::Program& program, const Context& context) {
  backend::StateShape shape =
      backend::state_shape_of(program.kvs, context.settings.k_type, context.settings.v_type);
  for (const program::State& state : program.states) {
    const uint64_t d = state.head_dim;
    const uint64_t chunk = kDeltaChunk * (state.n_key_heads() + state.n_heads) * d;
    shape.fixed_bytes +=
        (state.floats() + chunk) * sizeof(float) + kDeltaChunk * state.n_heads * sizeof(double);
  }
  return shape;
}

void export_state(const program::Program& program, const Context& context, const VectorOps& ops,
                  PositionRange range, backend::StateTarget to) {
  const backend::StateShape shape = state_shape(program, context);
  check_range(context, range,
              backend::fits_state(shape, range, to.positions.size(), to.fixed.size()));
  std::span<std::byte> fixed = to.fixed;
  if (range.end == 0) std::ranges::fill(std::exchange(fixed, {}), std::byte{0});
  for (size_t i = 0; i < context.states.size() && !fixed.empty(); ++i) {
    check(context.span.settled <= range.end && range.end <= context.span.end,
          "a recurrent state where it is not known");
    export_layer(context.states[i], program.states[i], ops,
                 {.settled = context.span.settled, .end = range.end}, fixed);
  }
  if (to.positions.empty()) return;
  walk(context, range, shape.position_bytes, to.positions.data(), kv_get);
}

void import_state(const program::Program& program, Context& context, PositionRange range,
                  backend::StateSource from) {
  const backend::StateShape shape = state_shape(program, context);
  check_range(context, range,
              backend::fits_state(shape, range, from.positions.size(), from.fixed.size()));
  std::span<const std::byte> fixed = from.fixed;
  for (size_t i = 0; i < context.states.size() && !fixed.empty(); ++i) {
    import_layer(context.states[i], program.states[i], range.end, fixed);
    context.span = {.settled = range.end, .end = range.end};
  }
  if (from.positions.empty()) return;
  walk(context, range, shape.position_bytes, from.positions.data(), kv_put);
}

}  // namespace godwit::cpu
