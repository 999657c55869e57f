// The stepwise executor: each step is a launch or a few (Attend: three; a ProjectAdd with a norm
// and a GatedUp of two types: two), over up to kGroupRows rows at once. A row's result does not
// depend on how many rows share a launch. A single row's launches are captured once in a CUDA
// graph, which reads token and position from device memory.
#pragma once

#include <memory>
#include <span>

#include "backend/cuda/decode_executor.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/weights.h"
#include "program/program.h"

namespace godwit::cuda {

struct StepwiseSettings {
  Queue queue;
  Capture capture = Capture::kGraph;
  int n_multiprocessors = 1;
  int max_shared_bytes = 0;
};

// Empty, or why a step cannot run.
[[nodiscard]] Status stepwise_supports(const program::Operation& operation);

class StepwiseExecutor final : public DecodeExecutor {
 public:
  // Program and weights outlive the executor.
  StepwiseExecutor(const program::Program& program, const DeviceWeights& weights,
                   const StepwiseSettings& settings)
      : program_(program), weights_(weights), settings_(settings) {}

  std::string_view name() const override { return "stepwise"; }
  Result<std::unique_ptr<ExecutorState>> attach(const Context& context) override;
  bool runs(program::StepRange) const override { return true; }
  Status run(Context& context, ExecutorState* state, const program::Row& row,
             program::StepRange steps) override;
  Status after_run(const Context&, ExecutorState*) override { return {}; }

  // Rows [first, first + n) of the call, n at most kGroupRows. `logit_first` and `n_logits`: their
  // places among the rows that want logits.
  struct Group {
    size_t first = 0;
    std::span<const program::Row> rows;
    size_t logit_first = 0;
    size_t n_logits = 0;
  };
  Status run_group(Context& context, const Group& group, program::StepRange steps);

 private:
  const program::Program& program_;
  const DeviceWeights& weights_;
  StepwiseSettings settings_;
};

}  // namespace godwit::cuda
