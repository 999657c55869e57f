#include "backend/cuda/kernels/attend_chunk.cuh"

#include "backend/cuda/kernels/enqueue.cuh"

namespace godwit::cuda {
namespace {

template <class T>
cudaError_t enqueue_typed(const Queue& queue, const AttendArgs& args) {
  const uint32_t n = args.n_rows * (args.n_heads / args.kv.layout.n_kv_heads);
  const Shape shape{.grid = dim3((n + kChunkRows - 1) / kChunkRows, args.kv.layout.n_kv_heads),
                    .threads = kChunkWarps * 32,
                    .shared_bytes = 0};
  if (args.kv.layout.head_dim == 64) return enqueue(queue, shape, attend_chunk<T, 64>, args);
  return enqueue(queue, shape, attend_chunk<T, 128>, args);
}

}  // namespace

bool can_attend_chunk(const KvLayout& layout) {
  return layout.order == KvLayout::Order::kOperand &&
         (layout.head_dim == 64 || layout.head_dim == 128);
}

cudaError_t enqueue_attend_chunk(const Queue& queue, const AttendArgs& args) {
  return args.kv.k_type == TensorType::kF16 ? enqueue_typed<__half>(queue, args)
                                            : enqueue_typed<__nv_bfloat16>(queue, args);
}

}  // namespace godwit::cuda
