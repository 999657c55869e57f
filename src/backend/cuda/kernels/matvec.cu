#include "backend/cuda/kernels/matvec.cuh"

#include "backend/cuda/kernels/enqueue.cuh"

namespace godwit::cuda {
namespace {

template <class W, int R, Cut cut>
cudaError_t enqueue_cut(const Queue& queue, const MatVecArgs& args, int max_shared_bytes) {
  uint64_t n_pairs = 0;
  for (uint32_t i = 0; i < args.n_products; ++i) {
    n_pairs += pairs_of<cut>(args.products[i].weight.rows);
  }
  if (args.finish == Finish::kGated) n_pairs = args.products[0].weight.rows;
  const uint64_t shared = matvec_shared_bytes(args.products[0].weight.cols, R);
  // About as many as run at once, so that activations are brought in seldom.
  constexpr uint64_t kMost = R == 1 ? 3 : 2;
  const uint64_t fitting = static_cast<uint64_t>(max_shared_bytes) / (shared + 1024);
  const uint64_t per_multiprocessor = fitting < 1 ? 1 : fitting < kMost ? fitting : kMost;
  const uint64_t at_once = per_multiprocessor * static_cast<uint64_t>(args.n_multiprocessors);
  const uint64_t wanted = (n_pairs + kMatVecWarps - 1) / kMatVecWarps;
  const Shape shape{.grid = dim3(static_cast<unsigned>(wanted < at_once ? wanted : at_once)),
                    .threads = kMatVecWarps * 32,
                    .shared_bytes = shared};
  return enqueue(queue, shape, matvec<W, R, cut>, args, n_pairs);
}

// By the shapes alone, so that a row's bits do not depend on how many rows share a launch.
template <class W, int R>
cudaError_t enqueue_typed(const Queue& queue, const MatVecArgs& args, int max_shared_bytes) {
  uint64_t n_pairs = 0;
  for (uint32_t i = 0; i < args.n_products; ++i) {
    n_pairs += pairs_of<Cut::kRows>(args.products[i].weight.rows);
  }
  const uint64_t n_warps =
      uint64_t{2} * kMatVecWarps * static_cast<uint64_t>(args.n_multiprocessors);
  if (n_pairs < n_warps && args.finish != Finish::kGated) {
    return enqueue_cut<W, R, Cut::kHalves>(queue, args, max_shared_bytes);
  }
  return enqueue_cut<W, R, Cut::kRows>(queue, args, max_shared_bytes);
}

template <int R>
cudaError_t enqueue_rows(const Queue& queue, const MatVecArgs& args, int max_shared_bytes) {
  switch (args.products[0].weight.type) {
    case TensorType::kF32:
      return enqueue_typed<float, R>(queue, args, max_shared_bytes);
    case TensorType::kF16:
      return enqueue_typed<__half, R>(queue, args, max_shared_bytes);
    case TensorType::kBF16:
      return enqueue_typed<__nv_bfloat16, R>(queue, args, max_shared_bytes);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t enqueue_matvec(const Queue& queue, const MatVecArgs& args, int max_shared_bytes) {
  const uint64_t group = matvec_shared_bytes(args.products[0].weight.cols, kGroupRows);
  if (args.n_rows == 1) return enqueue_rows<1>(queue, args, max_shared_bytes);
  // The static part of shared memory is less than a kilobyte.
  if (group + 1024 <= static_cast<uint64_t>(max_shared_bytes)) {
    return enqueue_rows<kGroupRows>(queue, args, max_shared_bytes);
  }
  for (uint32_t t = 0; t < args.n_rows; ++t) {
    MatVecArgs one = args;
    one.n_rows = 1;
    if (one.picked != nullptr) {
      one.picked += t;
    } else {
      one.x.data = args.x.row(t);
    }
    for (uint32_t i = 0; i < args.n_products; ++i) {
      one.products[i].out.data = args.products[i].out.data + t * args.products[i].out.stride;
    }
    if (const cudaError_t error = enqueue_rows<1>(queue, one, max_shared_bytes);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace godwit::cuda
