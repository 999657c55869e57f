// The weights of a Program as the CPU kernels read them: matrices that are multiplied are packed
// (kernel_table.h) into one arena, norms and biases are copied beside them, and a table that is
// only looked up stays in the file's mapping; so do all matrices where they are packed at each use,
// some rows at a time. Experts that a cache has (expert_cache.h) are not here, only what kernel
// multiplies with them.
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

// Rows that a thread packs at once where that is done at use.
inline constexpr size_t kMappedRows = 4 * kTileRows;

class PackedWeights {
 public:
  struct Placement {
    std::vector<bool> cached;  // indexed by weight id: those that are elsewhere
    backend::Repack repack = backend::Repack::kAtLoad;
  };

  // Bytes that pack() will take for weights. Errors: a type without a kernel.
  [[nodiscard]] static Result<uint64_t> need(const program::Program& program,
                                             const Placement& placement);

  // Bytes of that which are routed experts.
  [[nodiscard]] static uint64_t expert_bytes(const program::Program& program,
                                             const Placement& placement);

  // Bytes of the file that stay there.
  [[nodiscard]] static uint64_t mapped_bytes(const program::Program& program,
                                             const Placement& placement);

  // Bytes of the row area of one thread.
  [[nodiscard]] static uint64_t row_area_bytes(const program::Program& program,
                                               const Placement& placement);

  // Packs on all threads of the pool. `files` must outlive this object: embedding rows and matrices
  // that are packed at use are read from there.
  [[nodiscard]] Status pack(const program::Program& program, const Placement& placement,
                            std::span<const std::span<const std::byte>> files, Isa isa,
                            ThreadPool& pool, const backend::Progress& progress);

  [[nodiscard]] Status lock() { return arena_.lock(); }

  struct Matrix {
    const std::byte* packed = nullptr;  // null where cached or mapped
    const std::byte* mapped = nullptr;  // in file layout, where packed at use
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
  // For kMappedRows packed rows of any mapped matrix; one per thread.
  [[nodiscard]] std::span<std::byte> row_area(size_t thread);
  // One row in file layout.
  [[nodiscard]] std::span<const std::byte> file_row(const program::WeightRef& ref,
                                                    uint64_t row) const;

 private:
  [[nodiscard]] Status allocate(const program::Program& program, const Placement& placement,
                                size_t n_threads);

  AlignedBuffer arena_;
  AlignedBuffer row_areas_;
  uint64_t row_area_bytes_ = 0;        // of one thread
  std::vector<Matrix> matrices_;       // indexed by weight id; null where not multiplied
  std::vector<const float*> vectors_;  // indexed by weight id; null where not a vector or taps
  std::vector<std::span<const std::byte>> files_;
};

}  // namespace godwit::cpu
