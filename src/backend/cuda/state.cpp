#include "backend/cuda/state.h"

#include <algorithm>

#include "backend/cuda/kernels/launch.h"

namespace godwit::cuda {
namespace {

// Positions go through an area of at most this size on the card.
constexpr uint64_t kAreaBytes = uint64_t{32} << 20;

// Calls copy(area, first position of the range, positions) before or after the area's positions are
// scattered into, or gathered from, the caches.
template <class Copy>
Status walk(const Context& context, backend::PositionRange range, uint64_t position_bytes,
            StateWay way, cudaStream_t stream, const Copy& copy) {
  const uint64_t n_at_once = std::max<uint64_t>(1, kAreaBytes / position_bytes);
  Result<DeviceMemory> area = DeviceMemory::allocate(
      std::min(n_at_once, range.size()) * position_bytes, "moving a context's state");
  if (!area) return fail(std::move(area).error());
  for (uint64_t at = range.begin; at < range.end; at += n_at_once) {
    const uint64_t n = std::min(n_at_once, range.end - at);
    const uint64_t offset = (at - range.begin) * position_bytes;
    if (way == StateWay::kIn) {
      if (Status s = copy(area->data(), offset, n * position_bytes); !s) return s;
    }
    std::byte* rows = area->data();
    for (const KvCache& kv : context.kvs) {
      const KvLayout& layout = kv.layout;
      const cudaError_t error = enqueue_state(
          stream,
          {.kv = kv, .rows = rows, .row_bytes = position_bytes, .begin = at, .n = n, .way = way});
      if (Status s = status_of(error, "moving a context's state"); !s) return s;
      rows += uint64_t{layout.n_kv_heads} * layout.head_dim * (layout.k_bytes + layout.v_bytes);
    }
    if (way == StateWay::kOut) {
      if (Status s = copy(area->data(), offset, n * position_bytes); !s) return s;
    }
    if (Status s = status_of(cudaStreamSynchronize(stream), "moving a context's state"); !s) {
      return s;
    }
  }
  return {};
}

}  // namespace

backend::StateShape state_shape(const program::Program& program, const Context& context) {
  return backend::state_shape_of(program.kvs, context.settings.k_type, context.settings.v_type);
}

Status export_state(const program::Program& program, const Context& context,
                    backend::PositionRange range, backend::StateTarget to, cudaStream_t stream) {
  if (to.positions.empty()) return {};
  return walk(context, range, state_shape(program, context).position_bytes, StateWay::kOut, stream,
              [&](std::byte* area, uint64_t offset, uint64_t n) {
                return status_of(cudaMemcpyAsync(to.positions.data() + offset, area, n,
                                                 cudaMemcpyDeviceToHost, stream),
                                 "exporting a state");
              });
}

Status import_state(const program::Program& program, Context& context, backend::PositionRange range,
                    backend::StateSource from, cudaStream_t stream) {
  if (from.positions.empty()) return {};
  return walk(context, range, state_shape(program, context).position_bytes, StateWay::kIn, stream,
              [&](std::byte* area, uint64_t offset, uint64_t n) {
                return status_of(cudaMemcpyAsync(area, from.positions.data() + offset, n,
                                                 cudaMemcpyHostToDevice, stream),
                                 "importing a state");
              });
}

}  // namespace godwit::cuda
