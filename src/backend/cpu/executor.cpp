#include "backend/cpu/executor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/attention.h"
#include "base/bits.h"
#include "quant/formats.h"

namespace godwit::cpu {
namespace {

// The part of `n` items in groups of `group` that thread `thread` takes.
struct Share {
  size_t begin = 0;
  size_t end = 0;
};

Share share_of(size_t n, size_t group, size_t thread, size_t n_threads) {
  const size_t groups = div_up(n, group);
  return {.begin = std::min(n, groups * thread / n_threads * group),
          .end = std::min(n, groups * (thread + 1) / n_threads * group)};
}

// A step's input, in each form that one of its weights reads.
struct Input {
  Activations f32;
  Activations q8_32;
  Activations q8_256;
  size_t n_rows = 0;

  [[nodiscard]] const Activations& form(ActivationKind kind) const {
    switch (kind) {
      case ActivationKind::kF32:
        return f32;
      case ActivationKind::kQ8Block32:
        return q8_32;
      case ActivationKind::kQ8Block256:
        return q8_256;
    }
    return f32;
  }
};

class Walker {
 public:
  Walker(const Call& call, size_t thread)
      : call_(call), context_(call.context), thread_(thread), n_threads_(call.pool.size()) {}

  void step(const program::Step& s) {
    std::visit([this](const auto& operation) { execute(operation); }, s.operation);
    call_.pool.barrier();
  }

  // Cosines and sines of every row, [n_rot / 2] each, in double and rounded once.
  void prepare_angles() {
    for (size_t r = 0; r < context_.angles.size(); ++r) {
      const program::Rope& rope = call_.program.ropes[r];
      const size_t half = rope.n_rot / 2;
      const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
      for (size_t t = rows.begin; t < rows.end; ++t) {
        float* const out = context_.angles[r].row(t);
        for (size_t i = 0; i < half; ++i) {
          const double angle = call_.rows[t].position.value * rope.frequencies[i];
          out[i] = static_cast<float>(std::cos(angle) * rope.magnitude);
          out[half + i] = static_cast<float>(std::sin(angle) * rope.magnitude);
        }
      }
    }
    call_.pool.barrier();
  }

 private:
  [[nodiscard]] size_t n_rows() const { return call_.rows.size(); }
  [[nodiscard]] const BufferView& buffer(program::BufferId id) const {
    return context_.buffers[id.value];
  }

  // Where the input of a step comes from: rows of a buffer, normed or not.
  struct Source {
    const BufferView& from;
    const program::RmsNorm* norm = nullptr;
    std::span<const uint32_t> picked;  // rows of `from`; empty for all of the call
  };

  // The forms of its input that a step's weights read; floats are always there.
  struct Forms {
    bool q8_32 = false;
    bool q8_256 = false;
  };
  [[nodiscard]] Forms forms_of(std::initializer_list<program::WeightRef> readers) const {
    Forms forms;
    for (const program::WeightRef& reader : readers) add_form(reader, forms);
    return forms;
  }
  void add_form(const program::WeightRef& reader, Forms& forms) const {
    switch (call_.weights.matrix(reader).kernel->activation) {
      case ActivationKind::kF32:
        return;
      case ActivationKind::kQ8Block32:
        forms.q8_32 = true;
        return;
      case ActivationKind::kQ8Block256:
        forms.q8_256 = true;
        return;
    }
  }

  // Norms and rounds the input. A single row is made by every thread for itself, which is cheaper
  // than a barrier; more rows are shared out and end in one.
  Input prepare(const Source& source, Forms forms) {
    const size_t n = source.picked.empty() ? n_rows() : source.picked.size();
    const bool own = n == 1;
    const InputArea& area = own ? context_.own_inputs[thread_] : context_.shared_input;
    const Share rows = own ? Share{0, 1} : share_of(n, 1, thread_, n_threads_);
    const size_t cols = source.from.width;

    const float* x = source.from.data;
    size_t stride = source.from.stride;
    if (source.norm != nullptr) {
      float* const normed = reinterpret_cast<float*>(area.normed.data());
      stride = round_up(cols, 16);
      for (size_t t = rows.begin; t < rows.end; ++t) {
        const size_t from = source.picked.empty() ? t : source.picked[t];
        call_.ops.rms_norm(source.from.row(from), call_.weights.vector(source.norm->weight),
                           source.norm->epsilon, normed + t * stride, cols);
      }
      x = normed;
    }

    const auto round = [&](ActivationKind kind, std::span<std::byte> scratch) {
      const Activations layout =
          layout_activations(kind, x, stride, activation_planes(kind) * n, cols, scratch);
      quantize_planes(kind, layout, x, stride, n, cols, {rows.begin, rows.end}, call_.isa);
      return layout;
    };
    Input input{.f32 = layout_activations(ActivationKind::kF32, x, stride, n, cols, {}),
                .q8_32 = {},
                .q8_256 = {},
                .n_rows = n};
    if (forms.q8_32) input.q8_32 = round(ActivationKind::kQ8Block32, area.q8_32);
    if (forms.q8_256) input.q8_256 = round(ActivationKind::kQ8Block256, area.q8_256);
    if (!own) call_.pool.barrier();
    return input;
  }

  [[nodiscard]] Share my_rows(const program::WeightRef& weight) const {
    return share_of(weight.rows, kTileRows, thread_, n_threads_);
  }

  // This thread's rows of y = W x.
  void multiply(const program::WeightRef& weight, const Input& input, const BufferView& y) {
    const PackedWeights::Matrix& matrix = call_.weights.matrix(weight);
    const Share mine = my_rows(weight);
    if (mine.begin == mine.end) return;
    const ActivationKind kind = matrix.kernel->activation;
    const size_t n_mine = mine.end - mine.begin;
    const size_t planes = activation_planes(kind);
    // The rows of this thread as a matrix of their own; y of two planes needs a place to meet.
    const BufferView sums =
        planes == 1
            ? BufferView{.data = y.data + mine.begin, .width = n_mine, .stride = y.stride}
            : BufferView{.data = reinterpret_cast<float*>(context_.plane_sums[thread_].data()),
                         .width = n_mine,
                         .stride = round_up(n_mine, kTileRows)};
    matrix.kernel->run({.weights = matrix.packed + mine.begin * matrix.packed_row_bytes,
                        .rows = n_mine,
                        .cols = weight.cols,
                        .row_begin = 0,
                        .row_end = n_mine,
                        .x = input.form(kind),
                        .n_tokens = planes * input.n_rows,
                        .y = sums.data,
                        .y_stride = sums.stride});
    if (planes == 1) return;
    for (size_t t = 0; t < input.n_rows; ++t) {
      const float* const first = sums.row(t);
      const float* const second = sums.row(input.n_rows + t);
      float* const out = y.row(t) + mine.begin;
      for (size_t r = 0; r < n_mine; ++r) out[r] = first[r] + second[r];
    }
  }

  // y[mine] += bias[mine], every row of the call.
  void add_bias(const program::WeightRef& bias, Share mine, const BufferView& y) {
    const float* const b = call_.weights.vector(bias);
    for (size_t t = 0; t < n_rows(); ++t) {
      call_.ops.add(y.row(t) + mine.begin, b + mine.begin, mine.end - mine.begin);
    }
  }

  void execute(const program::Embed& s) {
    const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
    for (size_t t = rows.begin; t < rows.end; ++t) {
      const auto token = static_cast<uint64_t>(call_.rows[t].token.value);
      quant::decode_row(s.table.type, call_.weights.file_row(s.table, token),
                        {buffer(s.out).row(t), s.table.cols});
    }
  }

  void execute(const program::NormProject& s) {
    Forms forms;
    for (const program::Projection& p : s.projections) add_form(p.weight, forms);
    const Input input = prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms);
    for (const program::Projection& p : s.projections) {
      multiply(p.weight, input, buffer(p.out));
      if (p.bias) add_bias(*p.bias, my_rows(p.weight), buffer(p.out));
    }
  }

  void execute(const program::ProjectAdd& s) {
    const Input input =
        prepare({.from = buffer(s.in), .norm = nullptr, .picked = {}}, forms_of({s.weight}));
    multiply(s.weight, input, context_.gate);
    const Share mine = my_rows(s.weight);
    if (s.bias) add_bias(*s.bias, mine, context_.gate);
    for (size_t t = 0; t < n_rows(); ++t) {
      call_.ops.add(buffer(s.target).row(t) + mine.begin, context_.gate.row(t) + mine.begin,
                    mine.end - mine.begin);
    }
  }

  void execute(const program::GatedUp& s) {
    const Input input =
        prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms_of({s.gate, s.up}));
    multiply(s.gate, input, context_.gate);
    multiply(s.up, input, buffer(s.out));
    const Share mine = my_rows(s.up);
    for (size_t t = 0; t < n_rows(); ++t) {
      float* const out = buffer(s.out).row(t) + mine.begin;
      call_.ops.silu_mul(context_.gate.row(t) + mine.begin, out, out, mine.end - mine.begin);
    }
  }

  void execute(const program::Output& s) {
    if (context_.logit_rows.empty()) return;
    const Input input =
        prepare({.from = buffer(s.in), .norm = &s.norm, .picked = context_.logit_rows},
                forms_of({s.weight}));
    multiply(s.weight, input, buffer(s.logits));
  }

  void execute(const program::Attend& s) {
    turn_and_store(s);
    call_.pool.barrier();
    const AttentionArgs args{
        .q = context_.turned_q.data,
        .q_stride = context_.turned_q.stride,
        .cache = context_.kvs[s.kv.value],
        .n_heads = s.n_heads,
        .first_position = static_cast<size_t>(call_.rows.front().position.value),
        .n_tokens = n_rows(),
        .scale = s.scale,
        .softcap = 0.0f,
        .window = 0,
        .scratch = context_.attention,
        .out = buffer(s.out).data,
        .out_stride = buffer(s.out).stride};
    attention_run(args, thread_, n_threads_, call_.isa);
    call_.pool.barrier();
    attention_merge(args, thread_, n_threads_, call_.isa);
  }

  // Turns this thread's share of queries into turned_q, and of keys into the cache, with values.
  void turn_and_store(const program::Attend& s) {
    const program::Rope& rope = call_.program.ropes[s.rope.value];
    const auto turn =
        s.pairs == program::RopePairs::kAdjacent ? call_.ops.rope_adjacent : call_.ops.rope_halves;
    const KvCache& cache = context_.kvs[s.kv.value];
    alignas(64) std::array<float, kMaxHeadDim> key;
    const size_t heads = s.n_heads + s.n_kv_heads;
    const Share items = share_of(n_rows() * heads, 1, thread_, n_threads_);
    for (size_t item = items.begin; item < items.end; ++item) {
      const size_t t = item / heads;
      const size_t head = item % heads;
      const float* const cosines = context_.angles[s.rope.value].row(t);
      const float* const sines = cosines + rope.n_rot / 2;
      if (head < s.n_heads) {
        turn(buffer(s.q).row(t) + head * s.head_dim, cosines, sines,
             context_.turned_q.row(t) + head * s.head_dim, rope.n_rot, s.head_dim);
        continue;
      }
      const size_t kv_head = head - s.n_heads;
      turn(buffer(s.k).row(t) + kv_head * s.head_dim, cosines, sines, key.data(), rope.n_rot,
           s.head_dim);
      kv_store(cache, kv_head, static_cast<size_t>(call_.rows[t].position.value), key.data(),
               buffer(s.v).row(t) + kv_head * s.head_dim, call_.isa);
    }
  }

  const Call& call_;
  Context& context_;
  size_t thread_;
  size_t n_threads_;
};

}  // namespace

void walk_steps(const Call& call, program::StepRange range, size_t thread) {
  Walker walker(call, thread);
  walker.prepare_angles();
  for (size_t i = range.begin; i < range.end; ++i) walker.step(call.program.main[i]);
}

}  // namespace godwit::cpu
