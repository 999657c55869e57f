// Bytes that a step must move, from its operands alone: the one function behind every floor that
// `info`, `bench`, `check` and the docs print. Counted: weights once per call however many rows
// share it, KV once per position and head, new KV written. Activations (kilobytes that stay in
// cache) are not counted; an embedding row counts as one row per token.
#pragma once

#include <cstdint>
#include <span>

#include "base/tensor_type.h"
#include "program/program.h"

namespace godwit::program {

struct Traffic {
  uint64_t weight_bytes = 0;
  uint64_t kv_read_bytes = 0;
  uint64_t kv_write_bytes = 0;

  [[nodiscard]] uint64_t total() const { return weight_bytes + kv_read_bytes + kv_write_bytes; }
  Traffic& operator+=(const Traffic& other);
};

// A call of n_rows consecutive rows, the first at `position`. KV already cached is read once per
// call; rows of the call itself are read from cache.
struct TrafficInput {
  uint64_t position = 0;
  uint64_t n_rows = 1;
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
};

[[nodiscard]] Traffic traffic_of(const Operation& operation, const TrafficInput& input);
[[nodiscard]] Traffic traffic_of(std::span<const Step> steps, const TrafficInput& input);
// Of the main list.
[[nodiscard]] Traffic traffic_of(const Program& program, const TrafficInput& input);

// Bytes of a weight in the file.
[[nodiscard]] uint64_t weight_bytes(const WeightRef& weight);
// KV bytes that one position of context takes over all layers.
[[nodiscard]] uint64_t kv_bytes_per_position(const Program& program, TensorType k_type,
                                             TensorType v_type);

}  // namespace godwit::program
