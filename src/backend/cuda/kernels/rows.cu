#include "backend/cuda/kernels/rows.cuh"

#include "backend/cuda/kernels/enqueue.cuh"

namespace godwit::cuda {
namespace {

Shape block_per_row(uint32_t n_rows) {
  return {.grid = dim3(n_rows), .threads = kRowWarps * 32, .shared_bytes = 0};
}

}  // namespace

cudaError_t enqueue_embed(const Queue& queue, const EmbedArgs& args) {
  return enqueue(queue, block_per_row(args.n_rows), embed, args);
}

cudaError_t enqueue_finish(const Queue& queue, const FinishArgs& args) {
  return enqueue(queue, block_per_row(args.n_rows), finish_rows, args);
}

cudaError_t enqueue_split(const Queue& queue, const SplitArgs& args) {
  return enqueue(queue, block_per_row(args.n_rows), split_rows, args);
}

cudaError_t enqueue_state(cudaStream_t stream, const StateArgs& args) {
  const Queue queue{.stream = stream, .overlap = Overlap::kNone};
  return enqueue(queue, block_per_row(static_cast<uint32_t>(args.n)), move_state, args);
}

}  // namespace godwit::cuda
