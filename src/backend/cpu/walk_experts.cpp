#include <array>
#include <cmath>

#include "backend/cpu/walker.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

// `x` of `n` tokens per plane, cut down to token t and the columns from `col` on. The planes of
// one token lie n tokens apart.
Activations part_of(const Activations& x, size_t n, size_t t, size_t col, size_t block,
                    size_t sum_words) {
  Activations part = x;
  part.q += t * x.q_stride + col;
  part.scales += t * x.scale_stride + col / block;
  part.sums += t * x.sum_stride + col / block * sum_words;
  part.q_stride *= n;
  part.scale_stride *= n;
  part.sum_stride *= n;
  return part;
}

// One row of an input, from column `col` on (a multiple of the blocks of the forms it has).
Input part_of(const Input& input, size_t t, size_t col) {
  Input part = input;
  part.n_rows = 1;
  part.f32.f32 += t * input.f32.f32_stride + col;
  if (part.q8_32.q != nullptr) part.q8_32 = part_of(input.q8_32, input.n_rows, t, col, 32, 1);
  if (part.q8_256.q != nullptr) {
    part.q8_256 = part_of(input.q8_256, input.n_rows, t, col, 256, kSumWordsPerBlock256);
  }
  return part;
}

// The matrix that a slot of a row multiplies with.
MatrixPart slot_part(const program::ExpertMatrix& matrix,
                     const std::optional<program::WeightRef>& shared, const float* routing,
                     size_t slot, size_t n_used) {
  if (slot == n_used) return {.weight = *shared, .first = 0, .n = shared->rows};
  const auto id = static_cast<size_t>(routing[slot]);
  check(id < matrix.n_experts, "an expert that does not exist");
  return {.weight = matrix.weight, .first = id * matrix.rows(), .n = matrix.rows()};
}

}  // namespace

void Walker::execute(const program::Route& s) {
  const Input input =
      prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms_of({s.weight}));
  multiply(s.weight, input, context_.gate);
  call_.pool.barrier();
  const Share rows = share_of(n_rows(), 1, thread_, n_threads_);
  for (size_t t = rows.begin; t < rows.end; ++t) {
    choose_experts(s, t);
    if (!s.shared) continue;
    const float* const w = call_.weights.vector(*s.shared);
    const float* const x = input.f32.f32 + t * input.f32.f32_stride;
    double sum = 0;
    for (size_t i = 0; i < s.weight.cols; ++i) {
      sum += static_cast<double>(w[i]) * static_cast<double>(x[i]);
    }
    buffer(s.out.buffer).row(t)[2 * s.out.n_used] =
        static_cast<float>(1.0 / (1.0 + std::exp(-sum)));
  }
}

// The largest logits of row t, in falling order; of equal ones the lower id.
void Walker::choose_experts(const program::Route& s, size_t t) {
  const float* const logits = context_.gate.row(t);
  const size_t n_used = s.out.n_used;
  std::array<uint32_t, kMaxUsedExperts> ids;
  size_t n = 0;
  for (uint32_t id = 0; id < s.weight.rows; ++id) {
    if (n == n_used && !(logits[id] > logits[ids[n - 1]])) continue;
    size_t at = n < n_used ? n++ : n - 1;
    for (; at > 0 && logits[id] > logits[ids[at - 1]]; --at) ids[at] = ids[at - 1];
    ids[at] = id;
  }
  const auto relative = [&](size_t id) {
    return std::exp(static_cast<double>(logits[id]) - static_cast<double>(logits[ids[0]]));
  };
  double sum = 0;
  if (s.renormalise) {
    for (size_t i = 0; i < n_used; ++i) sum += relative(ids[i]);
  } else {
    for (size_t id = 0; id < s.weight.rows; ++id) sum += relative(id);
  }
  float* const out = buffer(s.out.buffer).row(t);
  for (size_t i = 0; i < n_used; ++i) {
    out[i] = static_cast<float>(ids[i]);
    out[n_used + i] = static_cast<float>(relative(ids[i]) / sum);
  }
}

void Walker::execute(const program::ExpertGatedUp& s) {
  Forms forms = forms_of({s.gate.weight, s.up.weight});
  if (s.shared_gate) add_form(*s.shared_gate, forms);
  if (s.shared_up) add_form(*s.shared_up, forms);
  const Input input = prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms);
  const size_t ffn = s.gate.rows();
  const auto activate =
      s.activation == program::Activation::kSilu ? call_.ops.silu_mul : call_.ops.gelu_mul;
  for (size_t t = 0; t < n_rows(); ++t) {
    const float* const routing = buffer(s.routing.buffer).row(t);
    const Input row = part_of(input, t, 0);
    for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
      const MatrixPart part = slot_part(s.gate, s.shared_gate, routing, slot, s.routing.n_used);
      // A place of its own for each slot: the shared expert's rows are shared out otherwise.
      const BufferView gate{
          .data = context_.gate.row(t) + slot * ffn, .width = part.n, .stride = 0};
      const BufferView out{.data = buffer(s.out).row(t) + slot * ffn, .width = part.n, .stride = 0};
      multiply(part, row, gate);
      multiply(slot_part(s.up, s.shared_up, routing, slot, s.routing.n_used), row, out);
      const Share mine = my_rows(part);
      activate(gate.data + mine.begin, out.data + mine.begin, out.data + mine.begin,
               mine.end - mine.begin);
    }
  }
}

void Walker::execute(const program::ExpertDownAdd& s) {
  Forms forms = forms_of({s.down.weight});
  if (s.shared_down) add_form(*s.shared_down, forms);
  const Input input = prepare({.from = buffer(s.in), .norm = nullptr, .picked = {}}, forms);
  for (size_t t = 0; t < n_rows(); ++t) {
    const float* const routing = buffer(s.routing.buffer).row(t);
    const BufferView product{.data = context_.gate.row(t), .width = s.down.rows(), .stride = 0};
    for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
      const MatrixPart part = slot_part(s.down, s.shared_down, routing, slot, s.routing.n_used);
      multiply(part, part_of(input, t, slot * s.down.weight.cols), product);
      const Share mine = my_rows(part);
      add_scaled(product.data + mine.begin, routing[s.routing.n_used + slot],
                 buffer(s.target).row(t) + mine.begin, mine.end - mine.begin);
    }
  }
}

}  // namespace godwit::cpu
