#include "backend/cuda/stepwise.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <map>

namespace godwit::cuda {
namespace {

using program::Operation;
using Group = StepwiseExecutor::Group;

// What makes one captured graph differ from another.
struct GraphKey {
  program::StepList list = program::StepList::kMain;
  size_t begin = 0;
  size_t end = 0;
  size_t n_logits = 0;
  uint64_t n_positions = 0;

  friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
};

class Graphs final : public ExecutorState {
 public:
  std::map<GraphKey, GraphExec> by_key;
};

// Enqueues the launches of one group of rows.
class Launcher {
 public:
  Launcher(const DeviceWeights& weights, const StepwiseSettings& settings, Context& context,
           const Group& group)
      : weights_(weights), settings_(settings), context_(context), group_(group) {}

  cudaError_t step(const program::Step& s) {
    return std::visit([this](const auto& operation) { return execute(operation); }, s.operation);
  }

 private:
  BufferView buffer(program::BufferId id) const {
    return view_from(context_.buffers[id.value], group_.first);
  }
  const float* bias(const std::optional<program::WeightRef>& ref) const {
    return ref ? weights_.vector(*ref) : nullptr;
  }
  uint32_t n_rows() const { return static_cast<uint32_t>(group_.n_rows); }

  // The area of products that are not where they belong yet, as a buffer of this width.
  BufferView wide(uint64_t width) const {
    return {.data = context_.scratch.wide, .width = width, .stride = context_.scratch.widest};
  }

  MatVecArgs input(const BufferView& x, const std::optional<program::RmsNorm>& norm) const {
    MatVecArgs args;
    args.x = x;
    args.n_rows = n_rows();
    args.n_products = 0;
    args.n_multiprocessors = settings_.n_multiprocessors;
    if (norm) {
      args.norm = weights_.vector(norm->weight);
      args.epsilon = norm->epsilon;
    }
    return args;
  }

  void add(MatVecArgs& args, const program::WeightRef& weight,
           const std::optional<program::WeightRef>& b, const BufferView& out) const {
    args.products[args.n_products++] = {
        .weight = weights_.matrix(weight), .bias = bias(b), .out = out};
  }

  cudaError_t multiply(const MatVecArgs& args) const {
    return enqueue_matvec(settings_.queue, args, settings_.max_shared_bytes);
  }

  cudaError_t execute(const program::Embed& s) const {
    return enqueue_embed(settings_.queue, {.table = weights_.matrix(s.table),
                                           .inputs = context_.inputs + group_.first,
                                           .scale = s.scale,
                                           .out = buffer(s.out),
                                           .n_rows = n_rows()});
  }

  cudaError_t execute(const program::Norm& s) const {
    BufferView out = buffer(s.out);
    for (const program::Norm::Part& part : s.parts) {
      SplitArgs args;
      args.x = buffer(part.in);
      args.norm = weights_.vector(part.norm.weight);
      args.epsilon = part.norm.epsilon;
      args.type = TensorType::kF32;
      args.out = out.data;
      args.stride = out.stride;
      args.n_columns = args.x.width;
      args.n_rows = n_rows();
      if (const cudaError_t error = enqueue_split(settings_.queue, args); error != cudaSuccess) {
        return error;
      }
      out.data += args.x.width;
    }
    return cudaSuccess;
  }

  // Neighbouring projections of one type share a launch.
  cudaError_t execute(const program::NormProject& s) const {
    MatVecArgs args = input(buffer(s.in), s.norm);
    for (size_t i = 0; i < s.projections.size(); ++i) {
      const program::Projection& p = s.projections[i];
      add(args, p.weight, p.bias, buffer(p.out));
      const bool last = i + 1 == s.projections.size();
      if (!last && args.n_products < kMaxProducts &&
          weights_.matrix(s.projections[i + 1].weight).type == weights_.matrix(p.weight).type) {
        continue;
      }
      if (const cudaError_t error = multiply(args); error != cudaSuccess) return error;
      args.n_products = 0;
    }
    return cudaSuccess;
  }

  cudaError_t execute(const program::Attend& s) const {
    const AttendArgs args = attend_args(s, weights_, context_, group_);
    if (const cudaError_t error = enqueue_append(settings_.queue, args); error != cudaSuccess) {
      return error;
    }
    if (const cudaError_t error = enqueue_attend_splits(settings_.queue, args);
        error != cudaSuccess) {
      return error;
    }
    return enqueue_attend_merge(settings_.queue, args);
  }

  cudaError_t execute(const program::ProjectAdd& s) const {
    MatVecArgs args = input(buffer(s.in), std::nullopt);
    if (!s.norm) {
      args.finish = Finish::kAdd;
      args.scale = s.scale;
      add(args, s.weight, s.bias, buffer(s.target));
      return multiply(args);
    }
    const BufferView sums = wide(s.weight.rows);
    add(args, s.weight, s.bias, sums);
    if (const cudaError_t error = multiply(args); error != cudaSuccess) return error;
    FinishArgs finish;
    finish.y = sums;
    finish.norm = weights_.vector(s.norm->weight);
    finish.epsilon = s.norm->epsilon;
    finish.finish = Finish::kAdd;
    finish.scale = s.scale;
    finish.out = buffer(s.target);
    finish.n_rows = n_rows();
    return enqueue_finish(settings_.queue, finish);
  }

  cudaError_t execute(const program::GatedUp& s) const {
    MatVecArgs args = input(buffer(s.in), s.norm);
    args.activation = s.activation;
    if (weights_.matrix(s.gate).type == weights_.matrix(s.up).type) {
      args.finish = Finish::kGated;
      add(args, s.gate, s.gate_bias, buffer(s.out));
      add(args, s.up, s.up_bias, buffer(s.out));
      return multiply(args);
    }
    const BufferView gate = wide(s.gate.rows);
    add(args, s.gate, s.gate_bias, gate);
    if (const cudaError_t error = multiply(args); error != cudaSuccess) return error;
    args.n_products = 0;
    add(args, s.up, s.up_bias, buffer(s.out));
    if (const cudaError_t error = multiply(args); error != cudaSuccess) return error;
    FinishArgs finish;
    finish.y = buffer(s.out);
    finish.gate = gate;
    finish.finish = Finish::kGated;
    finish.activation = s.activation;
    finish.out = buffer(s.out);
    finish.n_rows = n_rows();
    return enqueue_finish(settings_.queue, finish);
  }

  cudaError_t execute(const program::Output& s) const {
    for (size_t done = 0; done < group_.n_logits; done += kGroupRows) {
      MatVecArgs args = input(context_.buffers[s.in.value], s.norm);
      args.picked = context_.logit_rows + group_.logit_first + done;
      args.n_rows = static_cast<uint32_t>(std::min(kGroupRows, group_.n_logits - done));
      args.scale = s.scale;
      args.softcap = s.softcap;
      add(args, s.weight, s.bias,
          view_from(context_.buffers[s.logits.value], group_.logit_first + done));
      if (const cudaError_t error = multiply(args); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  // Refused by stepwise_supports().
  cudaError_t execute(const program::Recurrent&) const { return cudaErrorNotSupported; }
  cudaError_t execute(const program::Route&) const { return cudaErrorNotSupported; }
  cudaError_t execute(const program::ExpertGatedUp&) const { return cudaErrorNotSupported; }
  cudaError_t execute(const program::ExpertDownAdd&) const { return cudaErrorNotSupported; }

  const DeviceWeights& weights_;
  const StepwiseSettings& settings_;
  Context& context_;
  const Group& group_;
};

Status fits(const program::WeightRef& weight, int max_shared_bytes) {
  const uint64_t bytes = matvec_shared_bytes(weight.cols, 1) + 1024;
  if (bytes <= static_cast<uint64_t>(max_shared_bytes)) return {};
  return fail("cuda: rows of {} weights take {} bytes of a block's memory, the card has {}",
              weight.cols, bytes, max_shared_bytes);
}

Status supports_norm(const std::optional<program::RmsNorm>& norm, uint32_t head_dim) {
  if (!norm || norm->weight.cols % head_dim == 0) return {};
  return fail("cuda: a norm of {} values over heads of {}", norm->weight.cols, head_dim);
}

Status supports_attend(const program::Attend& s) {
  if (s.head_dim > kMaxHeadDim) {
    return fail("cuda: heads of {} dimensions; expected at most {}", s.head_dim, kMaxHeadDim);
  }
  if (s.sinks) return fail("cuda: no kernel for attention with sinks");
  if (Status status = supports_norm(s.q_norm, s.head_dim); !status) return status;
  return supports_norm(s.k_norm, s.head_dim);
}

Status supports_gated_up(const program::GatedUp& s, int max_shared_bytes) {
  if (s.activation == program::Activation::kSwigluClamped) {
    return fail("cuda: no kernel for clamped gates");
  }
  return fits(s.gate, max_shared_bytes);
}

}  // namespace

Status stepwise_supports(const Operation& operation, int max_shared_bytes) {
  using Answer = Status;
  return std::visit(
      program::Overloaded{
          [](const program::Embed&) -> Answer { return {}; },
          [](const program::Norm&) -> Answer { return {}; },
          [&](const program::NormProject& s) -> Answer {
            for (const program::Projection& p : s.projections) {
              if (Status status = fits(p.weight, max_shared_bytes); !status) return status;
            }
            return {};
          },
          [](const program::Attend& s) -> Answer { return supports_attend(s); },
          [](const program::Recurrent&) -> Answer {
            return fail("cuda: no kernel for recurrent layers");
          },
          [&](const program::ProjectAdd& s) -> Answer { return fits(s.weight, max_shared_bytes); },
          [&](const program::GatedUp& s) -> Answer {
            return supports_gated_up(s, max_shared_bytes);
          },
          [](const program::Route&) -> Answer {
            return fail("cuda: no kernel for routed experts");
          },
          [](const program::ExpertGatedUp&) -> Answer {
            return fail("cuda: no kernel for routed experts");
          },
          [](const program::ExpertDownAdd&) -> Answer {
            return fail("cuda: no kernel for routed experts");
          },
          [&](const program::Output& s) -> Answer { return fits(s.weight, max_shared_bytes); }},
      operation);
}

BufferView view_from(const BufferView& view, size_t row) {
  return {.data = view.row(row), .width = view.width, .stride = view.stride};
}

AttendArgs attend_args(const program::Attend& step, const DeviceWeights& weights,
                       const Context& context, const Group& group) {
  const auto buffer = [&](program::BufferId id) {
    return view_from(context.buffers[id.value], group.first);
  };
  AttendArgs args;
  args.q = buffer(step.q);
  args.k = buffer(step.k);
  args.v = buffer(step.v);
  args.out = buffer(step.out);
  args.inputs = context.inputs + group.first;
  args.kv = context.kvs[step.kv.value];
  args.rope = context.ropes[step.rope.value];
  args.pairs = step.pairs;
  args.n_rows = static_cast<uint32_t>(group.n_rows);
  args.n_heads = step.n_heads;
  args.scale = step.scale;
  if (step.q_norm) {
    args.q_norm = weights.vector(step.q_norm->weight);
    args.q_norm_span = static_cast<uint32_t>(step.q_norm->weight.cols);
    args.q_epsilon = step.q_norm->epsilon;
  }
  if (step.k_norm) {
    args.k_norm = weights.vector(step.k_norm->weight);
    args.k_norm_span = static_cast<uint32_t>(step.k_norm->weight.cols);
    args.k_epsilon = step.k_norm->epsilon;
  }
  if (step.q_scale) {
    args.position_beta = step.q_scale->beta;
    args.position_length = step.q_scale->length;
  }
  args.softcap = step.softcap;
  args.window = step.window;
  args.gated = step.gated;
  args.n_positions = group.n_positions;
  args.scratch = context.scratch;
  args.scratch.turned_q = context.scratch.turned_q + group.first * context.scratch.widest;
  return args;
}

Result<std::unique_ptr<ExecutorState>> StepwiseExecutor::attach(const Context&) {
  return std::make_unique<Graphs>();
}

Status StepwiseExecutor::run(Context& context, ExecutorState* state, const program::Row& row,
                             program::StepRange steps) {
  Group group{.n_logits = row.wants_logits ? size_t{1} : 0,
              .n_positions = static_cast<uint64_t>(row.position.value) + 1};
  if (settings_.capture == Capture::kNone) return run_group(context, group, steps);
  // One graph serves all positions up to a power of two.
  group.n_positions = std::min(std::bit_ceil(std::max(group.n_positions, kSplitPositions)),
                               context.settings.n_positions);
  return run_graph(context, static_cast<Graphs&>(*state), group, steps);
}

Status StepwiseExecutor::run_group(Context& context, const Group& group,
                                   program::StepRange steps) const {
  Launcher launcher(weights_, settings_, context, group);
  for (size_t i = steps.begin; i < steps.end; ++i) {
    const program::Step& step = program_.steps(steps.list)[i];
    if (Status s = status_of(launcher.step(step), step.label); !s) return s;
  }
  return {};
}

Status StepwiseExecutor::run_graph(Context& context, ExecutorState& state, const Group& group,
                                   program::StepRange steps) const {
  const GraphKey key{.list = steps.list,
                     .begin = steps.begin,
                     .end = steps.end,
                     .n_logits = group.n_logits,
                     .n_positions = group.n_positions};
  GraphExec& exec = static_cast<Graphs&>(state).by_key[key];
  cudaStream_t stream = settings_.queue.stream;
  if (exec == nullptr) {
    if (Status s = status_of(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                             "capturing a graph");
        !s) {
      return s;
    }
    const Status launched = run_group(context, group, steps);
    cudaGraph_t captured = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
    const Graph graph(captured);
    if (!launched) return launched;
    if (Status s = status_of(ended, "capturing a graph"); !s) return s;
    cudaGraphExec_t made = nullptr;
    if (Status s = status_of(cudaGraphInstantiate(&made, captured, 0), "making a graph"); !s) {
      return s;
    }
    exec.reset(made);
  }
  return status_of(cudaGraphLaunch(exec.get(), stream), "launching a graph");
}

}  // namespace godwit::cuda
