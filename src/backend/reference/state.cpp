#include "backend/reference/state.h"

#include <cstring>

#include "base/check.h"

namespace godwit::reference {
namespace {

using backend::PositionRange;

size_t width_of(const program::Kv& kv) { return size_t{kv.n_kv_heads} * kv.head_dim; }

}  // namespace

backend::StateShape state_shape(std::span<const program::Kv> kvs) {
  return backend::state_shape_of(kvs, TensorType::kF64, TensorType::kF64);
}

void export_state(std::span<const program::Kv> kvs, std::span<const KvCache> caches,
                  PositionRange range, backend::StateTarget to) {
  check(backend::fits_state(state_shape(kvs), range, to.positions.size(), to.fixed.size()),
        "a state of another size");
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

void import_state(std::span<const program::Kv> kvs, std::span<KvCache> caches, PositionRange range,
                  backend::StateSource from) {
  check(backend::fits_state(state_shape(kvs), range, from.positions.size(), from.fixed.size()),
        "a state of another size");
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
