#include "backend/cpu/state.h"

#include <array>
#include <cstring>

#include "backend/cpu/attention.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

using backend::PositionRange;

// Copies head_dim keys of one position between their tile and a plain row.
template <class Word>
void gather_keys(const std::byte* tile, size_t n, std::byte* row) {
  for (size_t d = 0; d < n; ++d) {
    std::memcpy(row + d * sizeof(Word), tile + d * kKvTile * sizeof(Word), sizeof(Word));
  }
}
template <class Word>
void scatter_keys(const std::byte* row, size_t n, std::byte* tile) {
  for (size_t d = 0; d < n; ++d) {
    std::memcpy(tile + d * kKvTile * sizeof(Word), row + d * sizeof(Word), sizeof(Word));
  }
}

// Where one position of one head lies: its first key (the others follow kKvTile apart), its values.
std::byte* key_at(const KvCache& cache, size_t head, size_t position) {
  const size_t word = row_bytes(cache.k_type, 1);
  const size_t tile = (head * cache.capacity + position) / kKvTile;
  return cache.k + (tile * cache.head_dim * kKvTile + position % kKvTile) * word;
}
std::byte* value_at(const KvCache& cache, size_t head, size_t position) {
  return cache.v + (head * cache.capacity + position) * row_bytes(cache.v_type, cache.head_dim);
}

// Calls move(cache, head, position, key row, value row) for everything in the range, heads outside
// positions, so that a tile stays in the nearest cache while its positions are walked.
template <class Bytes, class Move>
void walk(const Context& context, PositionRange range, uint64_t position_bytes, Bytes* bytes,
          const Move& move) {
  uint64_t layer = 0;
  for (const KvCache& cache : context.kvs) {
    check(kv_type_supported(cache.k_type) && kv_type_supported(cache.v_type),
          "KV types of whole words");
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

// The fixed part of a layer, in the order of the layout.
std::array<std::span<std::byte>, 5> fixed_parts(const DeltaState& state) {
  const auto bytes = [](auto part) { return std::as_writable_bytes(part); };
  return {bytes(state.rows), bytes(state.matrix), bytes(state.keys), bytes(state.changes),
          bytes(state.log_decays)};
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

void export_state(const program::Program& program, const Context& context, PositionRange range,
                  backend::StateTarget to) {
  const backend::StateShape shape = state_shape(program, context);
  check_range(context, range,
              backend::fits_state(shape, range, to.positions.size(), to.fixed.size()));
  std::byte* fixed = to.fixed.data();
  for (const DeltaState& state : context.states) {
    if (to.fixed.empty()) break;
    for (const std::span<std::byte> part : fixed_parts(state)) {
      std::memcpy(fixed, part.data(), part.size());
      fixed += part.size();
    }
  }
  if (to.positions.empty()) return;
  walk(context, range, shape.position_bytes, to.positions.data(),
       [](const KvCache& cache, size_t head, uint64_t position, std::byte* k, std::byte* v) {
         const std::byte* const tile = key_at(cache, head, position);
         if (cache.k_type == TensorType::kF32) {
           gather_keys<uint32_t>(tile, cache.head_dim, k);
         } else {
           gather_keys<uint16_t>(tile, cache.head_dim, k);
         }
         std::memcpy(v, value_at(cache, head, position), row_bytes(cache.v_type, cache.head_dim));
       });
}

void import_state(const program::Program& program, Context& context, PositionRange range,
                  backend::StateSource from) {
  const backend::StateShape shape = state_shape(program, context);
  check_range(context, range,
              backend::fits_state(shape, range, from.positions.size(), from.fixed.size()));
  const std::byte* fixed = from.fixed.data();
  for (const DeltaState& state : context.states) {
    if (from.fixed.empty()) break;
    for (const std::span<std::byte> part : fixed_parts(state)) {
      std::memcpy(part.data(), fixed, part.size());
      fixed += part.size();
    }
    context.next_position = static_cast<int32_t>(range.end);
  }
  if (from.positions.empty()) return;
  walk(context, range, shape.position_bytes, from.positions.data(),
       [](const KvCache& cache, size_t head, uint64_t position, const std::byte* k,
          const std::byte* v) {
         std::byte* const tile = key_at(cache, head, position);
         if (cache.k_type == TensorType::kF32) {
           scatter_keys<uint32_t>(k, cache.head_dim, tile);
         } else {
           scatter_keys<uint16_t>(k, cache.head_dim, tile);
         }
         std::memcpy(value_at(cache, head, position), v, row_bytes(cache.v_type, cache.head_dim));
       });
}

}  // namespace godwit::cpu
