#include "backend/cuda/prefill.h"

#include <algorithm>

#include "base/check.h"

namespace godwit::cuda {
namespace {

using program::WeightRef;

class Chunk {
 public:
  Chunk(const DeviceWeights& weights, MatrixProduct& product, Queue queue, Context& context,
        uint64_t n_positions)
      : weights_(weights),
        product_(product),
        queue_(queue),
        context_(context),
        n_positions_(n_positions),
        n_rows_(static_cast<uint32_t>(context.n_rows)) {}

  Status run(const program::NormProject& s) {
    const BufferView& x = context_.buffers[s.in.value];
    for (const program::Projection& p : s.projections) {
      const BufferView& out = context_.buffers[p.out.value];
      if (Status status = multiply(x, s.norm, p.weight, out); !status) return status;
      if (!p.bias && row_scales(p.weight) == nullptr) continue;
      FinishArgs finish = finish_of(out, p.weight, p.bias);
      if (Status status = end(finish); !status) return status;
    }
    return {};
  }

  Status run(const program::ProjectAdd& s) {
    const BufferView sums = wide(s.weight.rows);
    if (Status status = multiply(context_.buffers[s.in.value], std::nullopt, s.weight, sums);
        !status) {
      return status;
    }
    FinishArgs finish = finish_of(sums, s.weight, s.bias);
    if (s.norm) {
      finish.norm = weights_.vector(s.norm->weight);
      finish.epsilon = s.norm->epsilon;
    }
    finish.finish = Finish::kAdd;
    finish.scale = s.scale;
    finish.out = context_.buffers[s.target.value];
    return end(finish);
  }

  Status run(const program::GatedUp& s) {
    const BufferView& x = context_.buffers[s.in.value];
    const BufferView& out = context_.buffers[s.out.value];
    const BufferView gate = wide(s.gate.rows);
    const struct {
      const WeightRef& weight;
      const std::optional<WeightRef>& bias;
      const BufferView& to;
    } halves[] = {{s.gate, s.gate_bias, gate}, {s.up, s.up_bias, out}};
    for (const auto& half : halves) {
      if (Status status = multiply(x, s.norm, half.weight, half.to); !status) return status;
      if (!half.bias && row_scales(half.weight) == nullptr) continue;
      FinishArgs finish = finish_of(half.to, half.weight, half.bias);
      if (Status status = end(finish); !status) return status;
    }
    FinishArgs finish;
    finish.y = out;
    finish.gate = gate;
    finish.finish = Finish::kGated;
    finish.activation = s.activation;
    finish.out = out;
    finish.n_rows = n_rows_;
    return end(finish);
  }

  // Everything is appended first: a row sees no further than its own position.
  Status run(const program::Attend& s) {
    StepwiseExecutor::Group group{.n_rows = n_rows_, .n_positions = n_positions_};
    const AttendArgs all = attend_args(s, weights_, context_, group);
    if (Status status = status_of(enqueue_append(queue_, all), "append"); !status) return status;
    if (can_attend_chunk(all.kv.layout)) {
      return status_of(enqueue_attend_chunk(queue_, all), "attend");
    }
    for (group.first = 0; group.first < n_rows_; group.first += kGroupRows) {
      group.n_rows = std::min(kGroupRows, n_rows_ - group.first);
      group.n_positions = n_positions_ - n_rows_ + group.first + group.n_rows;
      const AttendArgs args = attend_args(s, weights_, context_, group);
      if (Status status = status_of(enqueue_attend_splits(queue_, args), "attend"); !status) {
        return status;
      }
      if (Status status = status_of(enqueue_attend_merge(queue_, args), "attend"); !status) {
        return status;
      }
    }
    return {};
  }

 private:
  BufferView wide(uint64_t width) const {
    return {.data = context_.scratch.wide, .width = width, .stride = context_.scratch.widest};
  }
  const float* row_scales(const WeightRef& weight) const {
    const bool scaled = weights_.matrix(weight).type == TensorType::kF16;
    return scaled ? context_.scratch.row_scales : nullptr;
  }

  FinishArgs finish_of(const BufferView& y, const WeightRef& weight,
                       const std::optional<WeightRef>& bias) const {
    FinishArgs finish;
    finish.y = y;
    finish.row_scales = row_scales(weight);
    finish.bias = bias ? weights_.vector(*bias) : nullptr;
    finish.out = y;
    finish.n_rows = n_rows_;
    return finish;
  }

  Status end(const FinishArgs& args) const {
    return status_of(enqueue_finish(queue_, args), "finishing a product");
  }

  // y = W norm(x), still to be multiplied by the rows' scales.
  Status multiply(const BufferView& x, const std::optional<program::RmsNorm>& norm,
                  const WeightRef& ref, const BufferView& y) {
    const DeviceMatrix& weight = weights_.matrix(ref);
    const Scratch& scratch = context_.scratch;
    SplitArgs split;
    split.x = x;
    if (norm) {
      split.norm = weights_.vector(norm->weight);
      split.epsilon = norm->epsilon;
    }
    split.type = weight.type;
    split.high = scratch.high;
    split.low = scratch.low;
    split.row_scales = scratch.row_scales;
    split.out = scratch.turned_q;  // free outside Attend
    split.stride = scratch.widest;
    split.n_columns = padded(x.width);
    split.n_rows = n_rows_;
    if (Status s = status_of(enqueue_split(queue_, split), "splitting activations"); !s) return s;
    MatrixProduct::Args args{
        .weight = weight, .x = scratch.high, .x_stride = scratch.widest, .n_rows = n_rows_, .y = y};
    if (weight.type == TensorType::kF32) {
      args.x = scratch.turned_q;
      return product_.multiply(args, queue_.stream);
    }
    if (Status s = product_.multiply(args, queue_.stream); !s) return s;
    args.x = scratch.low;
    args.into = MatrixProduct::Into::kAdd;
    return product_.multiply(args, queue_.stream);
  }

  const DeviceWeights& weights_;
  MatrixProduct& product_;
  Queue queue_;
  Context& context_;
  uint64_t n_positions_;
  uint32_t n_rows_;
};

}  // namespace

Status Prefill::run(Context& context, uint64_t n_positions, program::StepRange steps) const {
  // The library's kernels know nothing of programmatic launch: plain order throughout.
  const Queue queue{.stream = queue_.stream, .overlap = Overlap::kNone};
  Chunk chunk(weights_, product_, queue, context, n_positions);
  const StepwiseExecutor::Group all{
      .n_rows = context.n_rows, .n_logits = context.n_logit_rows, .n_positions = n_positions};
  const std::vector<program::Step>& list = program_.steps(steps.list);
  for (size_t i = steps.begin; i < steps.end; ++i) {
    // Embedding and output are the same for any number of rows.
    const auto same = [&] { return stepwise_.run_group(context, all, {i, i + 1, steps.list}); };
    const Status s =
        std::visit(program::Overloaded{[&](const program::NormProject& o) { return chunk.run(o); },
                                       [&](const program::ProjectAdd& o) { return chunk.run(o); },
                                       [&](const program::GatedUp& o) { return chunk.run(o); },
                                       [&](const program::Attend& o) { return chunk.run(o); },
                                       [&](const program::Embed&) { return same(); },
                                       [&](const program::Norm&) { return same(); },
                                       [&](const program::Output&) { return same(); },
                                       [&](const program::Recurrent&) { return same(); },
                                       [&](const program::Route&) { return same(); },
                                       [&](const program::ExpertGatedUp&) { return same(); },
                                       [&](const program::ExpertDownAdd&) { return same(); }},
                   list[i].operation);
    if (!s) return fail(Error(s.error()).with(list[i].label));
  }
  return {};
}

}  // namespace godwit::cuda
