// Whole chunks of a prompt: every matrix times all rows at once, by cuBLASLt. Activations go in as
// two 16-bit numbers each, high and what it leaves over, and the two products are added in fp32:
// about 16 bits of an activation with BF16 weights, 22 with F16, so that a step stays as near to
// the oracle as the executors of single rows do. Attention runs over the whole chunk where
// can_attend_chunk() says so, else as theirs, group by group.
#pragma once

#include <memory>

#include "backend/cuda/matrix_product.h"
#include "backend/cuda/stepwise.h"

namespace godwit::cuda {

// Fewer rows are not worth it.
inline constexpr size_t kMinChunkRows = 32;

class Prefill {
 public:
  // Program, weights and product outlive it.
  Prefill(const program::Program& program, const DeviceWeights& weights,
          const StepwiseExecutor& stepwise, MatrixProduct& product, Queue queue)
      : program_(program),
        weights_(weights),
        stepwise_(stepwise),
        product_(product),
        queue_(queue) {}

  // All rows of the call, which context.inputs holds; the last sees n_positions.
  [[nodiscard]] Status run(Context& context, uint64_t n_positions, program::StepRange steps) const;

 private:
  const program::Program& program_;
  const DeviceWeights& weights_;
  const StepwiseExecutor& stepwise_;
  MatrixProduct& product_;
  Queue queue_;
};

}  // namespace godwit::cuda
