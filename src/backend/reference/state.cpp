#include "backend/reference/state.h"

#include <cstring>

#include "base/check.h"

namespace godwit::reference {
namespace {

using backend::PositionRange;

size_t width_of(const program::Kv& kv) { return size_t{kv.n_kv_heads} * kv.head_dim; }

}  // namespace

backend::StateShape state_shape(const program::Program& program) {
  backend::StateShape shape =
      backend::state_shape_of(program.kvs, TensorType::kF64, TensorType::kF64);
  for (const program::State& state : program.states) {
    shape.fixed_bytes += state.floats() * sizeof(double);
  }
  return shape;
}

void export_state(const program::Program& program, std::span<const KvCache> caches,
                  std::span<const DeltaStates> states, PositionRange range,
                  backend::StateTarget to) {
  const std::span<const program::Kv> kvs = program.kvs;
  check(backend::fits_state(state_shape(program), range, to.positions.size(), to.fixed.size()),
        "a state of another size");
  std::byte* fixed = to.fixed.data();
  for (const DeltaStates& all : states) {
    if (to.fixed.empty()) break;
    if (range.end == 0) {
      std::memset(to.fixed.data(), 0, to.fixed.size());
      break;
    }
    const DeltaState& state = all.at(static_cast<int32_t>(range.end));
    for (const std::vector<double>* part : {&state.rows, &state.matrix}) {
      std::memcpy(fixed, part->data(), part->size() * sizeof(double));
      fixed += part->size() * sizeof(double);
    }
  }
  if (to.positions.empty()) return;
  std::byte* out = to.positions.data();
  for (uint64_t position = range.begin; position < range.end; ++position) {
    for (size_t i = 0; i < kvs.size(); ++i) {
      const size_t n = width_of(kvs[i]);
      for (const std::vector<double>* from : {&caches[i].k, &caches[i].v}) {
        std::memcpy(out, from->data() + position * n, n * sizeof(double));
        out += n * sizeof(double);
      }
    }
  }
}

void import_state(const program::Program& program, std::span<KvCache> caches,
                  std::span<DeltaStates> states, PositionRange range, backend::StateSource from) {
  const std::span<const program::Kv> kvs = program.kvs;
  check(backend::fits_state(state_shape(program), range, from.positions.size(), from.fixed.size()),
        "a state of another size");
  const std::byte* fixed = from.fixed.data();
  for (DeltaStates& all : states) {
    if (from.fixed.empty()) break;
    all.before.clear();
    DeltaState& state = all.now;
    for (std::vector<double>* part : {&state.rows, &state.matrix}) {
      std::memcpy(part->data(), fixed, part->size() * sizeof(double));
      fixed += part->size() * sizeof(double);
    }
    state.next_position = static_cast<int32_t>(range.end);
  }
  if (from.positions.empty()) return;
  const std::byte* in = from.positions.data();
  for (uint64_t position = range.begin; position < range.end; ++position) {
    for (size_t i = 0; i < kvs.size(); ++i) {
      const size_t n = width_of(kvs[i]);
      for (std::vector<double>* to : {&caches[i].k, &caches[i].v}) {
        std::memcpy(to->data() + position * n, in, n * sizeof(double));
        in += n * sizeof(double);
      }
    }
  }
}

}  // namespace godwit::reference
