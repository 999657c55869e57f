#include "backend/cuda/kernels/attend.cuh"

#include "backend/cuda/kernels/append.cuh"
#include "backend/cuda/kernels/enqueue.cuh"

namespace godwit::cuda {
namespace {

// Splits that a row may need when the last one sees n_positions: with a window, one more than it
// spans.
uint64_t splits_of(const AttendArgs& args) {
  const uint64_t all = (args.n_positions + kSplitPositions - 1) / kSplitPositions;
  if (args.window == 0) return all;
  const uint64_t spanned = (args.window + kSplitPositions - 1) / kSplitPositions + 1;
  return spanned < all ? spanned : all;
}

template <class T>
cudaError_t enqueue_operand(const Queue& queue, const Shape& shape, const AttendArgs& args) {
  if (args.kv.layout.head_dim == 64) {
    return enqueue(queue, shape, attend_operand_split<T, 64>, args);
  }
  return enqueue(queue, shape, attend_operand_split<T, 128>, args);
}

}  // namespace

cudaError_t enqueue_append(const Queue& queue, const AttendArgs& args) {
  const KvLayout& layout = args.kv.layout;
  const Shape shape{.grid = dim3(args.n_heads + 2 * layout.n_kv_heads, args.n_rows),
                    .threads = 32,
                    .shared_bytes = layout.head_dim * sizeof(float)};
  return enqueue(queue, shape, append, args);
}

cudaError_t enqueue_attend_splits(const Queue& queue, const AttendArgs& args) {
  const KvLayout& layout = args.kv.layout;
  const uint32_t group = args.n_heads / layout.n_kv_heads;
  const uint32_t chunks = (group + kQueryHeads - 1) / kQueryHeads;
  const Shape shape{
      .grid = dim3(static_cast<unsigned>(splits_of(args)), layout.n_kv_heads * chunks, args.n_rows),
      .threads = kAttendWarps * 32,
      .shared_bytes = kAttendWarps * kQueryHeads * layout.head_dim * sizeof(float)};
  const bool known = layout.head_dim == 64 || layout.head_dim == 128;
  if (layout.order == KvLayout::Order::kOperand && known) {
    return args.kv.k_type == TensorType::kF16 ? enqueue_operand<__half>(queue, shape, args)
                                              : enqueue_operand<__nv_bfloat16>(queue, shape, args);
  }
  return enqueue(queue, shape, attend_any_split, args);
}

cudaError_t enqueue_attend_merge(const Queue& queue, const AttendArgs& args) {
  const size_t floats = splits_of(args) + size_t{kMergeWarps} * args.kv.layout.head_dim;
  const Shape shape{.grid = dim3(args.n_heads, args.n_rows),
                    .threads = kMergeWarps * 32,
                    .shared_bytes = floats * sizeof(float)};
  return enqueue(queue, shape, attend_merge, args);
}

}  // namespace godwit::cuda
