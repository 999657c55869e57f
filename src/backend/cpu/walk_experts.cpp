#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "backend/cpu/walker.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

// The columns of `x` from `col` on, of the token `t` and its other planes alone where `n` is the
// number of tokens per plane; all tokens with t 0 and n 1.
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

Input part_of(const Input& input, size_t n, size_t t, size_t col) {
  Input part = input;
  part.f32.f32 += t * input.f32.f32_stride + col;
  if (part.q8_32.q != nullptr) part.q8_32 = part_of(input.q8_32, n, t, col, 32, 1);
  if (part.q8_256.q != nullptr) {
    part.q8_256 = part_of(input.q8_256, n, t, col, 256, kSumWordsPerBlock256);
  }
  return part;
}

// Columns from `col` on, a multiple of the blocks of the forms that the input has.
Input columns_of(const Input& input, size_t col) { return part_of(input, 1, 0, col); }

// The same of one row alone.
Input row_of(const Input& input, size_t t, size_t col) {
  Input part = part_of(input, input.n_rows, t, col);
  part.n_rows = 1;
  return part;
}

}  // namespace

MatrixPart Walker::expert_of(const program::ExpertMatrix& matrix,
                             const VisitedExpert& expert) const {
  const bool cached = call_.experts != nullptr && call_.experts->layer_of(matrix.weight);
  return {.weight = matrix.weight,
          .first = expert.id * matrix.rows(),
          .n = matrix.rows(),
          .packed = cached ? call_.experts->packed(matrix.weight, expert) : nullptr,
          .mapped = cached ? call_.experts->mapped(matrix.weight, expert) : nullptr};
}

void Walker::execute(const program::Route& s) {
  const Input input =
      prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms_of({s.weight}));
  multiply(s.weight, input, context_.gate);
  add_bias(s.bias, my_rows(s.weight), n_rows(), context_.gate);
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
    buffer(s.out.buffer).row(t)[size_t{2} * s.out.n_used] =
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
  if (call_.playback != nullptr) play_back(s, t, std::span(ids).first(n_used));
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

// What the trace says the row's token chose, by falling logit.
void Walker::play_back(const program::Route& s, size_t t, std::span<uint32_t> ids) {
  const Playback& playback = *call_.playback;
  const float* const logits = context_.gate.row(t);
  std::ranges::copy(playback.replay.experts(playback.first_token + t, playback.layers[s.weight.id]),
                    ids.begin());
  std::ranges::sort(ids, [&](uint32_t a, uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
}

// A single row reads its part of the input where it lies.
Input Walker::gather(const Input& input, std::span<const ExpertRow> rows,
                     const SlotColumns& columns, const Forms& forms) {
  if (rows.size() == 1) return row_of(input, rows[0].row, rows[0].slot * columns.stride);
  const auto copy = [&](ActivationKind kind) {
    return gather_activations(kind, call_.planes, input.form(kind), input.n_rows, rows, columns,
                              context_.experts[thread_].gathered[static_cast<size_t>(kind)]);
  };
  Input part{.f32 = {}, .q8_32 = {}, .q8_256 = {}, .n_rows = rows.size()};
  if (forms.f32) part.f32 = copy(ActivationKind::kF32);
  if (forms.q8_32) part.q8_32 = copy(ActivationKind::kQ8Block32);
  if (forms.q8_256) part.q8_256 = copy(ActivationKind::kQ8Block256);
  return part;
}

// Each thread sorts the choices for itself: a few thousand at most, and no barrier.
template <class Compute>
void Walker::for_each_expert(const program::Routing& routing, const program::ExpertMatrix& matrix,
                             const SlotColumns& columns, const Input& input, const Forms& forms,
                             const Compute& compute) {
  const BufferView& ids = buffer(routing.buffer);
  ExpertRows::Area area = context_.experts[thread_].groups;
  area.begins = area.begins.first(matrix.n_experts + 1);
  const ExpertRows groups(
      {.ids = ids.data, .stride = ids.stride, .n_rows = n_rows(), .n_used = routing.n_used}, area);
  visit_experts(matrix, groups, [&](const VisitedExpert& expert) {
    std::span<const ExpertRow> left = groups.of(expert.id);
    while (!left.empty()) {
      const std::span<const ExpertRow> rows = left.first(std::min(kExpertRows, left.size()));
      compute(expert, rows, gather(input, rows, columns, forms));
      left = left.subspan(rows.size());
    }
  });
}

// Calls visit(expert) for each expert that rows chose, as soon as it can be multiplied with. With a
// cache the order is that of residency; no result may depend on it.
template <class Visit>
void Walker::visit_experts(const program::ExpertMatrix& matrix, const ExpertRows& groups,
                           const Visit& visit) {
  const auto layer =
      call_.experts == nullptr ? std::nullopt : call_.experts->layer_of(matrix.weight);
  std::vector<uint32_t> chosen;
  for (uint32_t expert = 0; expert < groups.n_experts(); ++expert) {
    if (groups.of(expert).empty()) continue;
    if (!layer) visit({.id = expert, .slot = nullptr, .mapped = {}});
    if (layer && thread_ == 0) chosen.push_back(expert);
  }
  if (!layer) return;
  ExpertVisit& residents = call_.experts->visit();
  if (thread_ == 0) residents.begin(*layer, chosen, call_.experts->layer_after(*layer));
  while (true) {
    if (thread_ == 0) residents.advance();
    call_.pool.barrier();
    if (residents.is_waiting()) residents.wait(thread_);
    for (const VisitedExpert& expert : residents.batch()) visit(expert);
    if (residents.is_last()) break;
    call_.pool.barrier();
  }
  failed_ = !residents.status();
}

// To this thread's columns of n rows.
void Walker::add_expert_bias(const program::ExpertMatrix& matrix, size_t expert, size_t n,
                             const BufferView& y) {
  if (!matrix.bias) return;
  const Share mine = share_of(matrix.rows(), kTileRows, thread_, n_threads_);
  const float* const bias = call_.weights.vector(*matrix.bias) + expert * matrix.rows();
  for (size_t i = 0; i < n; ++i) {
    call_.ops.add(y.row(i) + mine.begin, bias + mine.begin, mine.end - mine.begin);
  }
}

void Walker::execute(const program::ExpertGatedUp& s) {
  const Forms routed = forms_of({s.gate.weight, s.up.weight});
  Forms forms = routed;
  if (s.shared_gate) add_form(*s.shared_gate, forms);
  if (s.shared_up) add_form(*s.shared_up, forms);
  const Input input = prepare({.from = buffer(s.in), .norm = &s.norm, .picked = {}}, forms);
  const size_t ffn = s.gate.rows();
  const auto activate = activation(s.activation);
  const ExpertArea& area = context_.experts[thread_];
  const auto compute = [&](const VisitedExpert& expert, std::span<const ExpertRow> rows,
                           const Input& x) {
    const MatrixPart gate = expert_of(s.gate, expert);
    multiply(gate, x, area.first);
    multiply(expert_of(s.up, expert), x, area.second);
    add_expert_bias(s.gate, expert.id, rows.size(), area.first);
    add_expert_bias(s.up, expert.id, rows.size(), area.second);
    const Share mine = my_rows(gate);
    for (size_t i = 0; i < rows.size(); ++i) {
      float* const out = buffer(s.out).row(rows[i].row) + rows[i].slot * ffn;
      activate(area.first.row(i) + mine.begin, area.second.row(i) + mine.begin, out + mine.begin,
               mine.end - mine.begin);
    }
  };
  // Every slot reads the same columns.
  for_each_expert(s.routing, s.gate, {.stride = 0, .n = s.gate.weight.cols}, input, routed,
                  compute);
  if (s.shared_gate) gate_shared(s, input);
}

// The shared expert's part of `out` lies behind those of the slots.
void Walker::gate_shared(const program::ExpertGatedUp& s, const Input& input) {
  const auto activate = activation(s.activation);
  const BufferView& whole = buffer(s.out);
  const BufferView out{.data = whole.data + s.routing.n_used * s.gate.rows(),
                       .width = s.shared_gate->rows,
                       .stride = whole.stride};
  multiply(*s.shared_gate, input, context_.gate);
  multiply(*s.shared_up, input, out);
  const Share mine = my_rows(*s.shared_gate);
  for (size_t t = 0; t < n_rows(); ++t) {
    activate(context_.gate.row(t) + mine.begin, out.row(t) + mine.begin, out.row(t) + mine.begin,
             mine.end - mine.begin);
  }
}

void Walker::execute(const program::ExpertDownAdd& s) {
  const Forms routed = forms_of({s.down.weight});
  Forms forms = routed;
  if (s.shared_down) add_form(*s.shared_down, forms);
  const Input input = prepare({.from = buffer(s.in), .norm = nullptr, .picked = {}}, forms);
  const size_t dim = s.down.rows();
  const size_t ffn = s.down.weight.cols;
  const BufferView& products = context_.expert_products;
  const BufferView& some = context_.experts[thread_].first;
  const auto compute = [&](const VisitedExpert& expert, std::span<const ExpertRow> rows,
                           const Input& x) {
    const MatrixPart down = expert_of(s.down, expert);
    multiply(down, x, some);
    add_expert_bias(s.down, expert.id, rows.size(), some);
    const Share mine = my_rows(down);
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(some.row(i) + mine.begin, mine.end - mine.begin,
                  products.row(rows[i].row) + rows[i].slot * dim + mine.begin);
    }
  };
  for_each_expert(s.routing, s.down, {.stride = ffn, .n = ffn}, input, routed, compute);
  if (s.shared_down) {
    multiply(
        *s.shared_down, columns_of(input, s.routing.n_used * ffn),
        {.data = products.data + s.routing.n_used * dim, .width = dim, .stride = products.stride});
  }
  add_slots(s);
}

// This thread's columns of the sum, in order of slots whatever came first above.
void Walker::add_slots(const program::ExpertDownAdd& s) {
  const size_t dim = s.down.rows();
  const Share mine = share_of(dim, kTileRows, thread_, n_threads_);
  for (size_t t = 0; t < n_rows(); ++t) {
    const float* const weights = buffer(s.routing.buffer).row(t) + s.routing.n_used;
    float* const product = context_.expert_products.row(t);
    for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
      add_scaled(product + slot * dim + mine.begin, weights[slot],
                 buffer(s.target).row(t) + mine.begin, mine.end - mine.begin);
    }
  }
}

}  // namespace godwit::cpu
