// The state of a context as bytes on the host, in one layout whatever the backend: first what each
// position left behind (KV), position after position, so that a range can be cut or joined
// anywhere; then the fixed part, which is what no single position owns (recurrent states). Nothing
// here moves bytes: backends do, prefix trees and state files keep them.
//
// One position: for each of Program::kvs in order, K [n_kv_heads, head_dim] of k_type, then V
// likewise of v_type, little-endian, no padding.
// The fixed part: for each of Program::states in order, its raw rows, then its matrices, then what
// a backend keeps beside them (cpu: what the rows of an unfinished chunk changed), as numbers of
// the backend's own width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tensor_type.h"
#include "program/program.h"

namespace godwit::backend {

struct StateShape {
  // As exported. A backend that keeps other numbers than the context was asked for says so here.
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
  uint64_t position_bytes = 0;
  // 0 where attention is all there is; then a state is known at every position of its range.
  // Otherwise it is known only where the fixed part was exported.
  uint64_t fixed_bytes = 0;

  friend bool operator==(const StateShape&, const StateShape&) = default;
};

// Positions [begin, end).
struct PositionRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  [[nodiscard]] constexpr uint64_t size() const { return end - begin; }
};

// Both spans have exactly the bytes that StateShape says, or none: then that part stays out.
struct StateTarget {
  std::span<std::byte> positions = {};  // [range.size(), position_bytes]
  std::span<std::byte> fixed = {};      // [fixed_bytes]
};
struct StateSource {
  std::span<const std::byte> positions = {};
  std::span<const std::byte> fixed = {};
};

[[nodiscard]] constexpr StateShape state_shape_of(std::span<const program::Kv> kvs,
                                                  TensorType k_type, TensorType v_type) {
  StateShape shape{.k_type = k_type, .v_type = v_type};
  for (const program::Kv& kv : kvs) {
    const uint64_t numbers = uint64_t{kv.n_kv_heads} * kv.head_dim;
    shape.position_bytes += row_bytes(k_type, numbers) + row_bytes(v_type, numbers);
  }
  return shape;
}

// Whether spans of these sizes are what a shape and a range ask for.
[[nodiscard]] constexpr bool fits_state(const StateShape& shape, PositionRange range,
                                        size_t positions, size_t fixed) {
  return range.begin <= range.end &&
         (positions == 0 || positions == range.size() * shape.position_bytes) &&
         (fixed == 0 || fixed == shape.fixed_bytes);
}

}  // namespace godwit::backend
