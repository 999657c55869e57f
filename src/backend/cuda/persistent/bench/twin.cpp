#include "backend/cuda/persistent/bench/twin.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace godwit::cuda::persistent {
namespace {

double word(std::span<const uint32_t> words, uint64_t at) {
  return static_cast<double>(std::bit_cast<float>(words[at] & ~3u));
}

double weight(const program::WeightRef& w, uint64_t row, uint64_t column) {
  return static_cast<double>(widened(matrix_bits(w.id, row * w.cols + column, w.type), w.type));
}

double vector(const program::WeightRef& w, uint64_t i) {
  return static_cast<double>(vector_value(w.id, i));
}

std::vector<double> normed(std::vector<double> x, const program::WeightRef& w, double epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * vector(w, i);
  return x;
}

double dot(const program::WeightRef& w, uint64_t row, const std::vector<double>& x) {
  double sum = 0;
  for (size_t c = 0; c < x.size(); ++c) sum += weight(w, row, c) * x[c];
  return sum;
}

Deviation compare_matvec(const PhasePlan& plan, const Shape& shape, std::span<const uint32_t> words,
                         std::span<const float> logits, uint32_t n_samples) {
  std::vector<double> x(shape.cols);
  for (uint32_t i = 0; i < shape.cols; ++i) x[i] = word(words, shape.in.offset + i);
  if (plan.norm) x = normed(std::move(x), *plan.norm, static_cast<double>(shape.epsilon));
  Deviation out;
  const uint32_t samples = std::min(n_samples, shape.rows);
  for (uint32_t s = 0; s < samples; ++s) {
    // Spread over all rows, first and last among them.
    const uint32_t row =
        samples < 2 ? 0 : static_cast<uint32_t>(uint64_t{s} * (shape.rows - 1) / (samples - 1));
    if (shape.finish == Finish::kGate) {
      const double g = dot(plan.matrices[0], row, x);
      const double want = g / (1.0 + std::exp(-g)) * dot(plan.matrices[1], row, x);
      out.add(word(words, shape.out.offset + row), want);
      continue;
    }
    uint64_t r = row;
    size_t i = 0;
    while (r >= plan.matrices[i].rows) r -= plan.matrices[i++].rows;
    double want = dot(plan.matrices[i], r, x);
    if (!plan.biases.empty() && plan.biases[i]) want += vector(*plan.biases[i], r);
    want *= static_cast<double>(shape.scale);
    if (shape.finish == Finish::kAdd) want += word(words, shape.extra.offset + row);
    out.add(shape.finish == Finish::kLogits ? static_cast<double>(logits[row])
                                            : word(words, shape.out.offset + row),
            want);
  }
  return out;
}

std::vector<double> head_of(const BenchModel& m, std::span<const uint32_t> words, uint64_t at,
                            const std::optional<program::WeightRef>& norm, double epsilon,
                            const Shape& shape, const uint32_t* turn_at) {
  const uint32_t hd = shape.head_dim;
  std::vector<double> x(hd);
  for (uint32_t i = 0; i < hd; ++i) x[i] = word(words, at + i);
  if (norm) x = normed(std::move(x), *norm, epsilon);
  if (turn_at == nullptr) return x;
  const program::Rope& rope = m.program().ropes[0];
  for (uint32_t i = 0; i < hd / 2; ++i) {
    const double angle = static_cast<double>(*turn_at) * rope.frequencies[i];
    const uint32_t a = shape.rope_halves != 0 ? i : 2 * i;
    const uint32_t b = shape.rope_halves != 0 ? i + hd / 2 : 2 * i + 1;
    const double turned = x[a] * std::cos(angle) - x[b] * std::sin(angle);
    x[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
    x[a] = turned;
  }
  return x;
}

struct OwnKv {
  std::vector<double> k;
  std::vector<double> v;
};

OwnKv own_kv(const BenchModel& m, const PhasePlan& plan, const Shape& shape, uint32_t position,
             uint32_t kv_head, std::span<const uint32_t> words) {
  const uint64_t k_at = shape.in.offset + (shape.n_heads + kv_head) * shape.head_dim;
  const uint64_t v_at = k_at + uint64_t{shape.n_kv_heads} * shape.head_dim;
  OwnKv own{.k = head_of(m, words, k_at, plan.k_norm, static_cast<double>(shape.k_epsilon), shape,
                         &position),
            .v = head_of(m, words, v_at, std::nullopt, 0.0, shape, nullptr)};
  for (auto* values : {&own.k, &own.v}) {
    for (double& x : *values) {
      x = static_cast<double>(
          widened(narrowed(static_cast<float>(x), m.spec().kv_type), m.spec().kv_type));
    }
  }
  return own;
}

Deviation compare_attention(const BenchModel& m, const PhasePlan& plan, const Shape& shape,
                            uint32_t position, std::span<const uint32_t> words,
                            uint32_t n_samples) {
  Deviation out;
  const uint32_t hd = shape.head_dim;
  const KvLayout& layout = m.layout();
  const uint32_t layer = plan.kv->value;
  const uint32_t heads = std::min(std::max(n_samples / 32, 2u), shape.n_heads);
  for (uint32_t s = 0; s < heads; ++s) {
    const uint32_t head = s * (shape.n_heads - 1) / (heads - 1);
    const uint32_t kv_head = head / shape.group;
    const std::vector<double> q =
        head_of(m, words, shape.in.offset + uint64_t{head} * hd, plan.norm,
                static_cast<double>(shape.epsilon), shape, &position);
    const OwnKv own = own_kv(m, plan, shape, position, kv_head, words);
    const auto cached = [&](uint64_t byte) {
      return static_cast<double>(
          widened(kv_bits(layer, byte / 2, m.spec().kv_type), m.spec().kv_type));
    };
    std::vector<double> scores(position + 1);
    for (uint32_t p = 0; p <= position; ++p) {
      double score = 0;
      for (uint32_t d = 0; d < hd; ++d) {
        score += q[d] * (p == position ? own.k[d] : cached(layout.k_index(kv_head, p, d)));
      }
      scores[p] = score * static_cast<double>(shape.scale);
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - top);
    for (uint32_t d = 0; d < hd; d += 7) {
      double want = 0;
      for (uint32_t p = 0; p <= position; ++p) {
        want += scores[p] * (p == position ? own.v[d] : cached(layout.v_index(kv_head, p, d)));
      }
      out.add(word(words, shape.out.offset + uint64_t{head} * hd + d), want / sum);
    }
  }
  return out;
}

}  // namespace

void Deviation::add(double got, double want) {
  // A NaN must not vanish in a maximum.
  const double difference = std::isfinite(got) ? std::abs(got - want) : 1e30;
  squares += difference * difference;
  reference += want * want;
  worst = std::max(worst, difference);
  ++n;
}

double Deviation::relative() const { return std::sqrt(squares / std::max(reference, 1e-300)); }

Deviation compare_phase(const BenchModel& model, size_t phase, uint32_t position,
                        std::span<const uint32_t> words, std::span<const float> logits,
                        uint32_t n_samples) {
  const PhasePlan& plan = model.schedule().phases[phase];
  const Shape& shape = model.schedule().shape_of(plan);
  if (shape.kind == PhaseKind::kAttend) {
    return compare_attention(model, plan, shape, position, words, n_samples);
  }
  return compare_matvec(plan, shape, words, logits, n_samples);
}

Deviation compare_append(const BenchModel& model, size_t phase, uint32_t position,
                         std::span<const uint32_t> words, std::span<const uint16_t> layer_cache) {
  const PhasePlan& plan = model.schedule().phases[phase];
  const Shape& shape = model.schedule().shape_of(plan);
  const KvLayout& layout = model.layout();
  Deviation out;
  for (uint32_t h = 0; h < shape.n_kv_heads; ++h) {
    const OwnKv own = own_kv(model, plan, shape, position, h, words);
    for (uint32_t d = 0; d < shape.head_dim; ++d) {
      const TensorType type = model.spec().kv_type;
      out.add(static_cast<double>(widened(layer_cache[layout.k_index(h, position, d) / 2], type)),
              own.k[d]);
      out.add(static_cast<double>(widened(layer_cache[layout.v_index(h, position, d) / 2], type)),
              own.v[d]);
    }
  }
  return out;
}

}  // namespace godwit::cuda::persistent
