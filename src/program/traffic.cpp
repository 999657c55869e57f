#include "program/traffic.h"

#include <algorithm>

#include "program/access.h"

namespace godwit::program {
namespace {

uint64_t kv_bytes(const Kv& kv, TensorType k_type, TensorType v_type) {
  return kv.n_kv_heads * (row_bytes(k_type, kv.head_dim) + row_bytes(v_type, kv.head_dim));
}

Traffic traffic(const Embed& s, const TrafficInput& input) {
  return {.weight_bytes = input.n_rows * row_bytes(s.table.type, s.table.cols)};
}

Traffic traffic(const Attend& s, const TrafficInput& input) {
  const uint64_t bytes = kv_bytes({s.n_kv_heads, s.head_dim}, input.k_type, input.v_type);
  uint64_t norms = 0;
  for (const WeightRef& weight : access_of(Operation(s)).weights) norms += weight_bytes(weight);
  const uint64_t seen = s.window == 0 ? input.position : std::min(input.position, s.window - 1);
  return {
      .weight_bytes = norms, .kv_read_bytes = bytes * seen, .kv_write_bytes = bytes * input.n_rows};
}

uint64_t optional_bytes(const std::optional<WeightRef>& weight) {
  return weight ? weight_bytes(*weight) : 0;
}

// The experts that rows may differ in: n_used of each, no expert twice.
uint64_t expert_bytes(const ExpertMatrix& matrix, const Routing& routing, uint64_t n_rows) {
  const uint64_t read = std::min<uint64_t>(matrix.n_experts, n_rows * routing.n_used);
  return (weight_bytes(matrix.weight) + optional_bytes(matrix.bias)) / matrix.n_experts * read;
}

Traffic traffic(const ExpertGatedUp& s, const TrafficInput& input) {
  return {.weight_bytes = weight_bytes(s.norm.weight) +
                          expert_bytes(s.gate, s.routing, input.n_rows) +
                          expert_bytes(s.up, s.routing, input.n_rows) +
                          optional_bytes(s.shared_gate) + optional_bytes(s.shared_up)};
}

Traffic traffic(const ExpertDownAdd& s, const TrafficInput& input) {
  return {.weight_bytes =
              expert_bytes(s.down, s.routing, input.n_rows) + optional_bytes(s.shared_down)};
}

// A row reads its state, and a call of many rows keeps it in cache. What rows change need not be
// written at once, but may be kept beside the state and joined to it with that of later rows (as
// the cpu backend does, 16 rows at a time): a floor has no write.
Traffic traffic(const Recurrent& s, const TrafficInput&) {
  const uint64_t bytes = sizeof(float) * uint64_t{s.n_heads} * s.head_dim * s.head_dim;
  Traffic t{.weight_bytes = 0, .kv_read_bytes = bytes};
  for (const WeightRef& weight : access_of(Operation(s)).weights) {
    t.weight_bytes += weight_bytes(weight);
  }
  return t;
}

// Every other kind reads its weights once.
template <class S>
Traffic traffic(const S& s, const TrafficInput&) {
  Traffic t;
  for (const WeightRef& weight : access_of(Operation(s)).weights) {
    t.weight_bytes += weight_bytes(weight);
  }
  return t;
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  weight_bytes += other.weight_bytes;
  kv_read_bytes += other.kv_read_bytes;
  kv_write_bytes += other.kv_write_bytes;
  return *this;
}

uint64_t weight_bytes(const WeightRef& weight) {
  return weight.rows * row_bytes(weight.type, weight.cols);
}

Traffic traffic_of(const Operation& operation, const TrafficInput& input) {
  return std::visit([&](const auto& step) { return traffic(step, input); }, operation);
}

Traffic traffic_of(std::span<const Step> steps, const TrafficInput& input) {
  Traffic sum;
  for (const Step& step : steps) sum += traffic_of(step.operation, input);
  return sum;
}

Traffic traffic_of(const Program& program, const TrafficInput& input) {
  return traffic_of(program.main, input);
}

uint64_t kv_bytes_per_position(const Program& program, TensorType k_type, TensorType v_type) {
  uint64_t sum = 0;
  for (const Kv& kv : program.kvs) sum += kv_bytes(kv, k_type, v_type);
  return sum;
}

}  // namespace godwit::program
