#include "backend/cuda/stepwise.h"

namespace godwit::cuda {

Status stepwise_supports(const program::Operation&) { return {}; }

Result<std::unique_ptr<ExecutorState>> StepwiseExecutor::attach(const Context&) {
  return nullptr;
}

Status StepwiseExecutor::run(Context& context, ExecutorState*, const program::Row& row,
                             program::StepRange steps) {
  return run_group(context,
                   {.first = 0,
                    .rows = {&row, 1},
                    .logit_first = 0,
                    .n_logits = row.wants_logits ? size_t{1} : 0},
                   steps);
}

Status StepwiseExecutor::run_group(Context&, const Group&, program::StepRange) {
  return fail("cuda: not written yet");
}

}  // namespace godwit::cuda
