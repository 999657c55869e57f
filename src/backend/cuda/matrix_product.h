// Products of matrices by cuBLASLt, which is looked for when a model is loaded and not linked, so
// that the program starts where it is missing. One algorithm per shape, chosen once, and none that
// adds partial sums in an order of its own: the same input gives the same bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "backend/cuda/views.h"
#include "base/result.h"

namespace godwit::cuda {

class MatrixProduct {
 public:
  // Errors: no libcublasLt.so.13, memory.
  [[nodiscard]] static Result<std::unique_ptr<MatrixProduct>> open();
  virtual ~MatrixProduct() = default;

  // y[t, r] = sum over c of weight[r, c] x[t, c], or added to y.
  enum class Into : uint8_t { kStore, kAdd };
  struct Args {
    DeviceMatrix weight;
    const void* x = nullptr;  // [n_rows, x_stride] of the weight's type
    uint64_t x_stride = 0;
    uint64_t n_rows = 0;
    BufferView y;
    Into into = Into::kStore;
  };
  [[nodiscard]] virtual Status multiply(const Args& args, cudaStream_t stream) = 0;
};

}  // namespace godwit::cuda
