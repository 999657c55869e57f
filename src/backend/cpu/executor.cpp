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

  static const program::RmsNorm* pointer(const std::optional<program::RmsNorm>& norm) {
    return norm ? &*norm : nullptr;
  }

  // y[mine] += bias[mine], for rows [0, n).
  void add_bias(const std::optional<program::WeightRef>& bias, Share mine, size_t n,
                const BufferView& y) {
    if (!bias) return;
    const float* const b = call_.weights.vector(*bias);
    for (size_t t = 0; t < n; ++t) {
      call_.ops.add(y.row(t) + mine.begin, b + mine.begin, mine.end - mine.begin);
    }
  }

  void execute(const program::Embed& s) {
    const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
    for (size_t t = rows.begin; t < rows.end; ++t) {
      const auto token = static_cast<uint64_t>(call_.rows[t].token.value);
      float* const out = buffer(s.out).row(t);
      quant::decode_row(s.table.type, call_.weights.file_row(s.table, token), {out, s.table.cols});
      if (s.scale != 1.0f) call_.ops.scale(out, s.scale, out, s.table.cols);
    }
  }

  void execute(const program::NormProject& s) {
    Forms forms;
    for (const program::Projection& p : s.projections) add_form(p.weight, forms);
    const Input input =
        prepare({.from = buffer(s.in), .norm = pointer(s.norm), .picked = {}}, forms);
    for (const program::Projection& p : s.projections) {
      multiply(p.weight, input, buffer(p.out));
      add_bias(p.bias, my_rows(p.weight), n_rows(), buffer(p.out));
    }
  }

  void execute(const program::ProjectAdd& s) {
    const Input input =
        prepare({.from = buffer(s.in), .norm = nullptr, .picked = {}}, forms_of({s.weight}));
    multiply(s.weight, input, context_.gate);
    const Share mine = my_rows(s.weight);
    add_bias(s.bias, mine, n_rows(), context_.gate);
    if (s.norm) {
      call_.pool.barrier();
      add_normed(s);
      return;
    }
    for (size_t t = 0; t < n_rows(); ++t) {
      add_scaled(context_.gate.row(t) + mine.begin, s.scale, buffer(s.target).row(t) + mine.begin,
                 mine.end - mine.begin);
    }
  }

  // target += scale * x; x may be overwritten.
  void add_scaled(float* x, float scale, float* target, size_t n) {
    if (scale != 1.0f) call_.ops.scale(x, scale, x, n);
    call_.ops.add(target, x, n);
  }

  // The norm of ProjectAdd needs whole rows of the product. A single row is normed by every thread
  // for itself, as in prepare(), and each adds its part; more rows are shared out.
  void add_normed(const program::ProjectAdd& s) {
    const size_t n = s.weight.rows;
    const bool own = n_rows() == 1;
    const Share rows = own ? Share{0, 1} : share_of(n_rows(), 1, thread_, n_threads_);
    const Share mine = own ? my_rows(s.weight) : Share{0, n};
    float* const normed = reinterpret_cast<float*>(context_.own_inputs[thread_].normed.data());
    for (size_t t = rows.begin; t < rows.end; ++t) {
      call_.ops.rms_norm(context_.gate.row(t), call_.weights.vector(s.norm->weight),
                         s.norm->epsilon, normed, n);
      add_scaled(normed + mine.begin, s.scale, buffer(s.target).row(t) + mine.begin,
                 mine.end - mine.begin);
    }
  }

  void execute(const program::GatedUp& s) {
    const Input input = prepare({.from = buffer(s.in), .norm = pointer(s.norm), .picked = {}},
                                forms_of({s.gate, s.up}));
    multiply(s.gate, input, context_.gate);
    multiply(s.up, input, buffer(s.out));
    const Share mine = my_rows(s.up);
    add_bias(s.gate_bias, mine, n_rows(), context_.gate);
    add_bias(s.up_bias, mine, n_rows(), buffer(s.out));
    const auto activate =
        s.activation == program::Activation::kSilu ? call_.ops.silu_mul : call_.ops.gelu_mul;
    for (size_t t = 0; t < n_rows(); ++t) {
      float* const out = buffer(s.out).row(t) + mine.begin;
      activate(context_.gate.row(t) + mine.begin, out, out, mine.end - mine.begin);
    }
  }

  void execute(const program::Output& s) {
    if (context_.logit_rows.empty()) return;
    const Input input =
        prepare({.from = buffer(s.in), .norm = &s.norm, .picked = context_.logit_rows},
                forms_of({s.weight}));
    const BufferView& logits = buffer(s.logits);
    multiply(s.weight, input, logits);
    const Share mine = my_rows(s.weight);
    const size_t n_mine = mine.end - mine.begin;
    add_bias(s.bias, mine, input.n_rows, logits);
    for (size_t t = 0; t < input.n_rows; ++t) {
      float* const y = logits.row(t) + mine.begin;
      if (s.scale != 1.0f) call_.ops.scale(y, s.scale, y, n_mine);
      if (s.softcap != 0.0f) call_.ops.softcap(y, s.softcap, y, n_mine);
    }
  }

  void execute(const program::Attend& s) {
    if (has_row_norm(s)) {
      norm_head_rows(s);
      call_.pool.barrier();
    }
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
        .softcap = s.softcap,
        .window = s.window,
        .scratch = context_.attention,
        .out = buffer(s.out).data,
        .out_stride = buffer(s.out).stride};
    attention_run(args, thread_, n_threads_, call_.isa);
    call_.pool.barrier();
    attention_merge(args, thread_, n_threads_, call_.isa);
  }

  // Whether a norm spans the heads of a row, so that it must be over before heads are turned.
  static bool spans_heads(const std::optional<program::RmsNorm>& norm, size_t head_dim) {
    return norm && norm->weight.cols != head_dim;
  }
  static bool has_row_norm(const program::Attend& s) {
    return spans_heads(s.q_norm, s.head_dim) || spans_heads(s.k_norm, s.head_dim);
  }

  // Such norms, of queries into turned_q and of keys into `gate`, which no step holds on to.
  void norm_head_rows(const program::Attend& s) {
    const Share items = share_of(2 * n_rows(), 1, thread_, n_threads_);
    for (size_t item = items.begin; item < items.end; ++item) {
      const size_t t = item / 2;
      const bool is_q = item % 2 == 0;
      const std::optional<program::RmsNorm>& norm = is_q ? s.q_norm : s.k_norm;
      if (!spans_heads(norm, s.head_dim)) continue;
      call_.ops.rms_norm(buffer(is_q ? s.q : s.k).row(t), call_.weights.vector(norm->weight),
                         norm->epsilon, (is_q ? context_.turned_q : context_.gate).row(t),
                         norm->weight.cols);
    }
  }

  // Norms and turns this thread's share of queries into turned_q, and of keys into the cache, with
  // values.
  void turn_and_store(const program::Attend& s) {
    const size_t heads = s.n_heads + s.n_kv_heads;
    const Share items = share_of(n_rows() * heads, 1, thread_, n_threads_);
    for (size_t item = items.begin; item < items.end; ++item) {
      const size_t t = item / heads;
      const size_t head = item % heads;
      if (head < s.n_heads) {
        turn_query(s, t, head);
      } else {
        store_key(s, t, head - s.n_heads);
      }
    }
  }

  void turn_query(const program::Attend& s, size_t t, size_t head) {
    const BufferView& from = spans_heads(s.q_norm, s.head_dim) ? context_.turned_q : buffer(s.q);
    float* const out = context_.turned_q.row(t) + head * s.head_dim;
    turn(s, t, s.q_norm, from.row(t) + head * s.head_dim, out);
    if (!s.q_scale) return;
    const auto blocks = static_cast<uint64_t>(call_.rows[t].position.value) / s.q_scale->length;
    const double factor = 1.0 + s.q_scale->beta * std::log1p(static_cast<double>(blocks));
    call_.ops.scale(out, static_cast<float>(factor), out, s.head_dim);
  }

  void store_key(const program::Attend& s, size_t t, size_t kv_head) {
    const BufferView& from = spans_heads(s.k_norm, s.head_dim) ? context_.gate : buffer(s.k);
    alignas(64) std::array<float, kMaxHeadDim> key;
    turn(s, t, s.k_norm, from.row(t) + kv_head * s.head_dim, key.data());
    kv_store(context_.kvs[s.kv.value], kv_head, static_cast<size_t>(call_.rows[t].position.value),
             key.data(), buffer(s.v).row(t) + kv_head * s.head_dim, call_.isa);
  }

  // One head at its row's position, after its own norm if it has one; out may be x.
  void turn(const program::Attend& s, size_t t, const std::optional<program::RmsNorm>& norm,
            const float* x, float* out) {
    const program::Rope& rope = call_.program.ropes[s.rope.value];
    const float* const cosines = context_.angles[s.rope.value].row(t);
    if (norm && !spans_heads(norm, s.head_dim)) {
      call_.ops.rms_norm(x, call_.weights.vector(norm->weight), norm->epsilon, out, s.head_dim);
      x = out;
    }
    const auto turn_pairs =
        s.pairs == program::RopePairs::kAdjacent ? call_.ops.rope_adjacent : call_.ops.rope_halves;
    turn_pairs(x, cosines, cosines + rope.n_rot / 2, out, rope.n_rot, s.head_dim);
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
