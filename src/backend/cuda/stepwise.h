// The stepwise executor: each step is a launch or a few (Attend: three; a ProjectAdd with a norm:
// two; a NormProject or GatedUp of several types: one for each, and one more), over up to
// kGroupRows rows at once. A row's result does not depend on how many rows share a launch. A single
// row's launches are captured in CUDA graphs, one for each power of two of positions, which read
// token and position from device memory.
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
  int max_shared_bytes = 0;  // of a block
};

// Empty, or why a step cannot run on a card with so much shared memory per block.
[[nodiscard]] Status stepwise_supports(const program::Operation& operation, int max_shared_bytes);

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

  // Rows [first, first + n_rows) of the call, at most kGroupRows, or any number for a range without
  // Attend and products.
  struct Group {
    size_t first = 0;
    size_t n_rows = 1;
    size_t logit_first = 0;  // the first of its rows among those that want logits
    size_t n_logits = 0;
    uint64_t n_positions = 0;  // that its last row may see
  };
  Status run_group(Context& context, const Group& group, program::StepRange steps) const;

 private:
  Status run_graph(Context& context, ExecutorState& state, const Group& group,
                   program::StepRange steps) const;

  const program::Program& program_;
  const DeviceWeights& weights_;
  StepwiseSettings settings_;
};

// The arguments of a step's attention for rows of a call from `first` on; the stepwise executor and
// prefill share them.
[[nodiscard]] AttendArgs attend_args(const program::Attend& step, const DeviceWeights& weights,
                                     const Context& context, const StepwiseExecutor::Group& group);
// A view of a buffer from a row on.
[[nodiscard]] BufferView view_from(const BufferView& view, size_t row);

}  // namespace godwit::cuda
