#include "backend/cuda/cuda_backend.h"

namespace godwit::cuda {
namespace {

// How to get it is in one place.
tl::unexpected<Error> not_built() {
  return fail(
      "cuda: this build has no CUDA; configure with -DGODWIT_CUDA=ON, which needs the CUDA toolkit "
      "(13.0 or later)");
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_cuda_backend(const backend::BackendSettings&) {
  return not_built();
}

Result<std::unique_ptr<backend::Backend>> make_cuda_backend(const CudaSettings&) {
  return not_built();
}

Result<std::vector<Card>> cards() { return not_built(); }

bool built() { return false; }

}  // namespace godwit::cuda
