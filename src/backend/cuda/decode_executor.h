// How one row is run. Two implementations, chosen when a model is loaded: stepwise (a launch or a
// few per step) runs everything that the backend supports; persistent (one kernel walks the whole
// program) runs what persistent/executor.h says, and gives a reason for the rest. Called by
// CudaBackend alone.
#pragma once

#include <memory>
#include <string_view>

#include "backend/cuda/context.h"
#include "program/program.h"

namespace godwit::cuda {

class DecodeExecutor {
 public:
  virtual ~DecodeExecutor() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // What this executor keeps with a context, made once after the context's own memory; may be
  // nullptr. An error is a reason to run this context stepwise.
  [[nodiscard]] virtual Result<std::unique_ptr<ExecutorState>> attach(const Context& context) = 0;
  // Whether run() takes this range of steps; the whole program always.
  [[nodiscard]] virtual bool runs(program::StepRange steps) const = 0;
  // Enqueues steps over context.inputs[0], which lies on the card already, as does `row` for the
  // host's use. Reads from and leaves in context.buffers what Program says (for a range that is
  // the whole program the logits are enough) and appends to context.kvs. Does not wait; errors of
  // the launch only.
  [[nodiscard]] virtual Status run(Context& context, ExecutorState* state, const program::Row& row,
                                   program::StepRange steps) = 0;
  // After the stream was waited for: what the kernel found wrong with itself (a watchdog's record).
  [[nodiscard]] virtual Status after_run(const Context& context, ExecutorState* state) = 0;
};

}  // namespace godwit::cuda
