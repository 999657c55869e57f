// The weights of a Program as the CPU kernels read them: matrices that are multiplied are packed
// (kernel_table.h) into one arena, norms and biases are copied beside them, and a table that is
// only looked up stays in the file's mapping. Experts that a cache has (expert_cache.h) are not
// here, only what kernel multiplies with them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel_table.h"
#include "os/memory.h"
#include "os/thread_pool.h"
#include "program/program.h"

namespace godwit::cpu {

class PackedWeights {
 public:
  // Bytes that pack() will take. Errors: a type without a kernel.
  // `cached`: indexed by weight id, those that are elsewhere.
  [[nodiscard]] static Result<uint64_t> need(const program::Program& program,
                                             const std::vector<bool>& cached);

  // Bytes of that which are routed experts.
  [[nodiscard]] static uint64_t expert_bytes(const program::Program& program,
                                             const std::vector<bool>& cached);

  // Packs on all threads of the pool. `files` must outlive this object: embedding rows are read
  // from there.
  [[nodiscard]] Status pack(const program::Program& program, const std::vector<bool>& cached,
                            std::span<const std::span<const std::byte>> files, Isa isa,
                            ThreadPool& pool, const backend::Progress& progress);

  [[nodiscard]] Status lock() { return arena_.lock(); }

  struct Matrix {
    const std::byte* packed = nullptr;  // null where cached
    const MatVecKernel* kernel = nullptr;
    const Packing* packing = nullptr;
    size_t packed_row_bytes = 0;
    size_t file_row_bytes = 0;
  };
  [[nodiscard]] const Matrix& matrix(const program::WeightRef& ref) const {
    return matrices_[ref.id];
  }
  [[nodiscard]] const float* vector(const program::WeightRef& ref) const {
    return vectors_[ref.id];
  }
  // One row in file layout.
  [[nodiscard]] std::span<const std::byte> file_row(const program::WeightRef& ref,
                                                    uint64_t row) const;

 private:
  AlignedBuffer arena_;
  std::vector<Matrix> matrices_;       // indexed by weight id; null where not multiplied
  std::vector<const float*> vectors_;  // indexed by weight id; null where not a vector or taps
  std::vector<std::span<const std::byte>> files_;
};

}  // namespace godwit::cpu
