// The weights of a Program on the card: row-major, F32, F16 and BF16 as in the file; the other
// types decoded to F32, which is exact; vectors (one row) always F32. Rows are padded (views.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/views.h"
#include "program/program.h"

namespace godwit::cuda {

class DeviceWeights {
 public:
  // What a weight is kept as.
  [[nodiscard]] static TensorType stored_type(const program::Weight& weight);
  [[nodiscard]] static uint64_t need(const program::Program& program);

  // Uploads everything; `weights` as Backend::load() has it.
  [[nodiscard]] static Result<DeviceWeights> upload(
      const program::Program& program, std::span<const std::span<const std::byte>> weights,
      cudaStream_t stream, const backend::Progress& progress);

  [[nodiscard]] const DeviceMatrix& matrix(const program::WeightRef& ref) const {
    return matrices_[ref.id];
  }
  // A vector: norm, bias.
  [[nodiscard]] const float* vector(const program::WeightRef& ref) const {
    return reinterpret_cast<const float*>(matrices_[ref.id].data);
  }

 private:
  std::vector<DeviceMatrix> matrices_;  // indexed by WeightRef::id
  DeviceMemory memory_;
};

}  // namespace godwit::cuda
