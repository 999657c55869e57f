// The memory of one sequence on the card: activations, KV, RoPE tables, the work areas of prefill
// and the stepwise executor, and pinned host copies. All of it is allocated when the context is
// made; running a token allocates nothing.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "backend/cuda/views.h"
#include "program/program.h"

namespace godwit::cuda {

// What an executor keeps with a context.
class ExecutorState {
 public:
  virtual ~ExecutorState() = default;
};

class Context {
 public:
  [[nodiscard]] static backend::MemoryNeed need(const program::Program& program,
                                                const backend::ContextSettings& settings);
  [[nodiscard]] static Result<std::unique_ptr<Context>> create(
      const program::Program& program, const backend::ContextSettings& settings);

  backend::ContextSettings settings;
  std::vector<BufferView> buffers;  // indexed by BufferId; logits have max_logit_rows rows
  std::vector<KvCache> kvs;         // indexed by KvRef; keys already turned by RoPE
  std::vector<RopeTable> ropes;     // indexed by RopeRef
  Scratch scratch;
  RowInput* inputs = nullptr;       // device, [max_rows], of the run in progress
  uint32_t* logit_rows = nullptr;   // device, [max_logit_rows]: which rows want logits
  RowInput* host_inputs = nullptr;  // pinned, the same
  uint32_t* host_logit_rows = nullptr;
  float* host_logits = nullptr;               // pinned, [max_logit_rows, n_vocab]
  std::unique_ptr<ExecutorState> stepwise;    // what the stepwise executor keeps here
  std::unique_ptr<ExecutorState> persistent;  // what the persistent one does
  bool runs_persistent = false;

  // Of the last run.
  size_t n_rows = 0;
  size_t n_logit_rows = 0;

 private:
  DeviceMemory memory_;
  PinnedMemory pinned_;
};

}  // namespace godwit::cuda
