#include "backend/cpu/executor.h"

#include <cmath>

#include "backend/cpu/walker.h"
#include "quant/formats.h"

namespace godwit::cpu {

// Cosines and sines of every row, [n_rot / 2] each, in double and rounded once.
void Walker::prepare_angles() {
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

void Walker::add_form(const program::WeightRef& reader, Forms& forms) const {
  switch (call_.weights.matrix(reader).kernel->activation) {
    case ActivationKind::kF32:
      forms.f32 = true;
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
Input Walker::prepare(const Source& source, Forms forms) {
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
    const Activations layout = layout_activations(
        kind, x, stride, activation_planes(kind, call_.planes) * n, cols, scratch);
    quantize_planes(kind, layout, x, stride, n, cols, {rows.begin, rows.end}, call_.isa,
                    call_.planes);
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

// This thread's rows of y = W x.
void Walker::multiply(const MatrixPart& part, const Input& input, const BufferView& y) {
  const PackedWeights::Matrix& matrix = call_.weights.matrix(part.weight);
  const Share mine = my_rows(part);
  if (mine.begin == mine.end) return;
  const ActivationKind kind = matrix.kernel->activation;
  const size_t n_mine = mine.end - mine.begin;
  const size_t planes = activation_planes(kind, call_.planes);
  // The rows of this thread as a matrix of their own; y of two planes needs a place to meet.
  const BufferView sums =
      planes == 1
          ? BufferView{.data = y.data + mine.begin, .width = n_mine, .stride = y.stride}
          : BufferView{.data = reinterpret_cast<float*>(context_.plane_sums[thread_].data()),
                       .width = n_mine,
                       .stride = round_up(n_mine, kTileRows)};
  MatVecArgs args{.weights = nullptr,
                  .rows = n_mine,
                  .cols = part.weight.cols,
                  .row_begin = 0,
                  .row_end = n_mine,
                  .x = input.form(kind),
                  .n_tokens = planes * input.n_rows,
                  .y = sums.data,
                  .y_stride = sums.stride};
  if (part.mapped != nullptr) {
    multiply_mapped(part, mine, call_.experts->mapped_rows(thread_), args);
  } else if (matrix.mapped != nullptr) {
    MatrixPart mapped = part;
    mapped.mapped = matrix.mapped + part.first * matrix.file_row_bytes;
    multiply_mapped(mapped, mine, call_.weights.row_area(thread_), args);
  } else {
    const std::byte* const first =
        part.packed != nullptr ? part.packed : matrix.packed + part.first * matrix.packed_row_bytes;
    args.weights = first + mine.begin * matrix.packed_row_bytes;
    matrix.kernel->run(args);
  }
  if (planes == 1) return;
  for (size_t t = 0; t < input.n_rows; ++t) {
    const float* const first = sums.row(t);
    const float* const second = sums.row(input.n_rows + t);
    float* const out = y.row(t) + mine.begin;
    for (size_t r = 0; r < n_mine; ++r) out[r] = first[r] + second[r];
  }
}

// The same for rows in file layout: some at a time are packed where the kernel finds them in cache.
void Walker::multiply_mapped(const MatrixPart& part, Share mine, std::span<std::byte> rows,
                             const MatVecArgs& whole) {
  const PackedWeights::Matrix& matrix = call_.weights.matrix(part.weight);
  for (size_t r = mine.begin; r < mine.end; r += kMappedRows) {
    const size_t n = std::min(kMappedRows, mine.end - r);
    matrix.packing->pack(part.mapped + r * matrix.file_row_bytes, n, part.weight.cols, rows.data());
    MatVecArgs args = whole;
    args.weights = rows.data();
    args.rows = n;
    args.row_end = n;
    args.y += r - mine.begin;
    matrix.kernel->run(args);
  }
}

// y[mine] += bias[mine], for rows [0, n).
void Walker::add_bias(const std::optional<program::WeightRef>& bias, Share mine, size_t n,
                      const BufferView& y) {
  if (!bias) return;
  const float* const b = call_.weights.vector(*bias);
  for (size_t t = 0; t < n; ++t) {
    call_.ops.add(y.row(t) + mine.begin, b + mine.begin, mine.end - mine.begin);
  }
}

void Walker::execute(const program::Embed& s) {
  const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
  for (size_t t = rows.begin; t < rows.end; ++t) {
    const auto token = static_cast<uint64_t>(call_.rows[t].token.value);
    float* const out = buffer(s.out).row(t);
    quant::decode_row(s.table.type, call_.weights.file_row(s.table, token), {out, s.table.cols});
    if (s.scale != 1.0f) call_.ops.scale(out, s.scale, out, s.table.cols);
  }
}

void Walker::execute(const program::Norm& s) {
  const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
  for (size_t t = rows.begin; t < rows.end; ++t) {
    float* out = buffer(s.out).row(t);
    for (const program::Norm::Part& part : s.parts) {
      const size_t n = part.norm.weight.cols;
      call_.ops.rms_norm(buffer(part.in).row(t), call_.weights.vector(part.norm.weight),
                         part.norm.epsilon, out, n);
      out += n;
    }
  }
}

void Walker::execute(const program::NormProject& s) {
  Forms forms;
  for (const program::Projection& p : s.projections) add_form(p.weight, forms);
  const Input input = prepare({.from = buffer(s.in), .norm = pointer(s.norm), .picked = {}}, forms);
  for (const program::Projection& p : s.projections) {
    multiply(p.weight, input, buffer(p.out));
    add_bias(p.bias, my_rows(p.weight), n_rows(), buffer(p.out));
  }
}

void Walker::execute(const program::ProjectAdd& s) {
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
void Walker::add_scaled(float* x, float scale, float* target, size_t n) {
  if (scale != 1.0f) call_.ops.scale(x, scale, x, n);
  call_.ops.add(target, x, n);
}

// The norm of ProjectAdd needs whole rows of the product. A single row is normed by every thread
// for itself, as in prepare(), and each adds its part; more rows are shared out.
void Walker::add_normed(const program::ProjectAdd& s) {
  const size_t n = s.weight.rows;
  const bool own = n_rows() == 1;
  const Share rows = own ? Share{0, 1} : share_of(n_rows(), 1, thread_, n_threads_);
  const Share mine = own ? my_rows(s.weight) : Share{0, n};
  float* const normed = reinterpret_cast<float*>(context_.own_inputs[thread_].normed.data());
  for (size_t t = rows.begin; t < rows.end; ++t) {
    call_.ops.rms_norm(context_.gate.row(t), call_.weights.vector(s.norm->weight), s.norm->epsilon,
                       normed, n);
    add_scaled(normed + mine.begin, s.scale, buffer(s.target).row(t) + mine.begin,
               mine.end - mine.begin);
  }
}

void Walker::execute(const program::GatedUp& s) {
  const Input input = prepare({.from = buffer(s.in), .norm = pointer(s.norm), .picked = {}},
                              forms_of({s.gate, s.up}));
  multiply(s.gate, input, context_.gate);
  multiply(s.up, input, buffer(s.out));
  const Share mine = my_rows(s.up);
  add_bias(s.gate_bias, mine, n_rows(), context_.gate);
  add_bias(s.up_bias, mine, n_rows(), buffer(s.out));
  const auto activate = activation(s.activation);
  for (size_t t = 0; t < n_rows(); ++t) {
    float* const out = buffer(s.out).row(t) + mine.begin;
    activate(context_.gate.row(t) + mine.begin, out, out, mine.end - mine.begin);
  }
}

void Walker::execute(const program::Output& s) {
  if (context_.logit_rows.empty()) return;
  const Input input = prepare(
      {.from = buffer(s.in), .norm = &s.norm, .picked = context_.logit_rows}, forms_of({s.weight}));
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

void walk_steps(const Call& call, program::StepRange range, size_t thread) {
  Walker walker(call, thread);
  walker.prepare_angles();
  const std::vector<program::Step>& steps = call.program.steps(range.list);
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!walker.step(steps[i])) return;
  }
}

}  // namespace godwit::cpu
