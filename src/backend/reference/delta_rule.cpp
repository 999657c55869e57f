#include "backend/reference/delta_rule.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/steps.h"
#include "base/check.h"

namespace godwit::reference {
namespace {

using program::Recurrent;

// log(1 + e^x) without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

void to_unit_length(std::span<double> x, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1.0 / std::sqrt(squares + epsilon);
  for (double& value : x) value *= factor;
}

// The channels of a row in the order of the convolution: q of all heads, k, v.
std::vector<double> raw_channels(const Recurrent& step, std::span<const double> qkv) {
  if (step.layout == Recurrent::Layout::kSplit) return {qkv.begin(), qkv.end()};
  const size_t d = step.head_dim;
  const size_t share = step.heads_per_key() * d;
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
  for (size_t h = 0; h < step.n_key_heads; ++h) {
    const std::span<const double> group = qkv.subspan(h * 2 * (d + share), 2 * (d + share));
    q.insert(q.end(), group.begin(), group.begin() + static_cast<std::ptrdiff_t>(d));
    k.insert(k.end(), group.begin() + static_cast<std::ptrdiff_t>(d),
             group.begin() + static_cast<std::ptrdiff_t>(2 * d));
    v.insert(v.end(), group.begin() + static_cast<std::ptrdiff_t>(2 * d),
             group.begin() + static_cast<std::ptrdiff_t>(2 * d + share));
  }
  q.insert(q.end(), k.begin(), k.end());
  q.insert(q.end(), v.begin(), v.end());
  return q;
}

std::span<const double> z_of_head(const Recurrent& step, const DeltaRow& row, size_t head) {
  const size_t d = step.head_dim;
  if (step.layout == Recurrent::Layout::kSplit) return row.z.subspan(head * d, d);
  const size_t heads = step.heads_per_key();
  const size_t group = head / heads * 2 * (d + heads * d);
  return row.qkv.subspan(group + 2 * d + heads * d + head % heads * d, d);
}

struct Gates {
  double b;
  double a;
};

Gates gates_of_head(const Recurrent& step, const DeltaRow& row, size_t head) {
  if (step.a) return {.b = row.b[head], .a = row.a[head]};
  const size_t heads = step.heads_per_key();
  const std::span<const double> group = row.b.subspan(head / heads * 2 * heads, 2 * heads);
  return {.b = group[head % heads], .a = group[heads + head % heads]};
}

// The convolution with the rows before and SiLU; then the raw row joins them.
std::vector<double> convolve(const DeltaLayer& layer, const std::vector<double>& raw,
                             DeltaState& state) {
  const size_t n = raw.size();
  std::vector<double> mixed(n);
  for (size_t c = 0; c < n; ++c) {
    const double* taps = layer.conv.data() + c * layer.taps;
    double sum = taps[layer.taps - 1] * raw[c];
    for (size_t i = 0; i + 1 < layer.taps; ++i) sum += taps[i] * state.rows[i * n + c];
    mixed[c] = silu(sum);
  }
  std::copy(state.rows.begin() + static_cast<std::ptrdiff_t>(n), state.rows.end(),
            state.rows.begin());
  std::copy(raw.begin(), raw.end(), state.rows.end() - static_cast<std::ptrdiff_t>(n));
  return mixed;
}

struct HeadInput {
  std::span<const double> q;
  std::span<const double> k;
  std::span<const double> v;
  double decay;  // exp(g)
  double beta;
};

// S <- decay S; S <- S + beta (v - S k) k^T; out = S q. S: [k, v].
void delta_head(const HeadInput& in, std::span<double> s, std::span<double> out) {
  const size_t d = in.q.size();
  std::vector<double> change(in.v.begin(), in.v.end());
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) {
      s[i * d + j] *= in.decay;
      change[j] -= s[i * d + j] * in.k[i];
    }
  }
  std::fill(out.begin(), out.end(), 0.0);
  for (size_t i = 0; i < d; ++i) {
    for (size_t j = 0; j < d; ++j) {
      s[i * d + j] += in.beta * change[j] * in.k[i];
      out[j] += s[i * d + j] * in.q[i];
    }
  }
}

}  // namespace

DeltaState::DeltaState(const program::State& shape)
    : rows(shape.conv_floats()), matrix(shape.matrix_floats()) {}

void DeltaState::reset() {
  next_position = 0;
  std::fill(rows.begin(), rows.end(), 0.0);
  std::fill(matrix.begin(), matrix.end(), 0.0);
}

void DeltaStates::go_to(int32_t position) {
  if (position == 0) {
    now.reset();
  } else {
    now = DeltaState(at(position));
  }
  before.clear();
}

const DeltaState& DeltaStates::at(int32_t position) const {
  if (now.next_position == position) return now;
  const auto found = std::ranges::find(before, position, &DeltaState::next_position);
  check(found != before.end(), "a recurrent state cannot jump in its sequence");
  return *found;
}

void delta_row(const DeltaLayer& layer, const DeltaRow& row, DeltaState& state) {
  const Recurrent& step = layer.step;
  const size_t d = step.head_dim;
  const size_t n_keys = step.n_key_heads;
  std::vector<double> mixed = convolve(layer, raw_channels(step, row.qkv), state);
  const std::span<double> q = std::span(mixed).first(n_keys * d);
  const std::span<double> k = std::span(mixed).subspan(n_keys * d, q.size());
  const std::span<double> v = std::span(mixed).subspan(2 * q.size());
  for (size_t h = 0; h < n_keys; ++h) {
    to_unit_length(q.subspan(h * d, d), static_cast<double>(step.length_epsilon));
    to_unit_length(k.subspan(h * d, d), static_cast<double>(step.length_epsilon));
  }
  for (uint32_t h = 0; h < step.n_heads; ++h) {
    const size_t key_head = step.key_head_of(h);
    const Gates gates = gates_of_head(step, row, h);
    const std::span<double> out = row.out.subspan(h * d, d);
    delta_head({.q = q.subspan(key_head * d, d),
                .k = k.subspan(key_head * d, d),
                .v = v.subspan(h * d, d),
                .decay = std::exp(softplus(gates.a + layer.dt_bias[h]) * layer.decay[h]),
                .beta = sigmoid(gates.b)},
               std::span(state.matrix).subspan(step.matrix_of(h) * d * d, d * d), out);
    for (double& value : out) value /= std::sqrt(static_cast<double>(d));
    rms_norm(out, layer.norm, static_cast<double>(step.norm.epsilon), out);
    const std::span<const double> z = z_of_head(step, row, h);
    for (size_t i = 0; i < d; ++i) out[i] *= silu(z[i]);
  }
  ++state.next_position;
}

}  // namespace godwit::reference
