#include "backend/reference/steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "backend/kv_rounding.h"
#include "base/half.h"
#include "quant/formats.h"

namespace godwit::reference {
namespace {

template <class Block>
void round_blocks(std::span<const float> x, std::span<double> out) {
  for (size_t i = 0; i + 32 <= x.size(); i += 32) {
    Block block;
    backend::round_kv(x.subspan(i).first<32>(), block);
    std::array<float, 32> decoded;
    quant::decode_block(block, decoded.data());
    std::ranges::copy(decoded, out.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

void decode_weight_row(const WeightView& weight, uint64_t row, std::span<double> out) {
  std::vector<float> values(weight.cols);
  const uint64_t bytes = row_bytes(weight.type, weight.cols);
  quant::decode_row(weight.type, weight.bytes.subspan(row * bytes, bytes), values);
  std::copy(values.begin(), values.end(), out.begin());
}

void mat_mul(const MatMul& args, ThreadPool& pool, Matrix& y) {
  std::vector<double> bias(args.bias != nullptr ? args.weight.rows : 0);
  if (args.bias != nullptr) decode_weight_row(*args.bias, 0, bias);
  pool.run([&](size_t thread) {
    std::vector<double> w(args.weight.cols);
    for (uint64_t r = thread; r < args.weight.rows; r += pool.size()) {
      decode_weight_row(args.weight, r, w);
      for (size_t t = 0; t < args.n_rows; ++t) {
        const std::span<const double> x = args.x->row(t);
        double sum = 0;
        for (size_t c = 0; c < w.size(); ++c) sum += w[c] * x[c];
        y.row(t)[r] = bias.empty() ? sum : sum + bias[r];
      }
    }
  });
}

void rms_norm(std::span<const double> x, std::span<const double> weight, double epsilon,
              std::span<double> y) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * factor * weight[i];
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double silu(double x) { return x * sigmoid(x); }

double activate(program::Activation activation, double gate, double up) {
  using program::kClamp;
  switch (activation) {
    case program::Activation::kSilu:
      return silu(gate) * up;
    case program::Activation::kGelu:
      return 0.5 * gate *
             (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) *
                              (gate + 0.044715 * gate * gate * gate))) *
             up;
    case program::Activation::kSwigluClamped: {
      const double clamped = std::min(gate, kClamp);
      return clamped * sigmoid(program::kClampedSlope * clamped) *
             (std::clamp(up, -kClamp, kClamp) + 1.0);
    }
  }
  return up;
}

double softcapped(double x, double cap) { return cap == 0.0 ? x : cap * std::tanh(x / cap); }

double query_factor(const program::PositionScale& scale, uint64_t position) {
  return 1.0 + scale.beta * std::log1p(static_cast<double>(position / scale.length));
}

void rope_head(const program::Rope& rope, program::RopePairs pairs, uint64_t position,
               std::span<double> head) {
  const size_t half = rope.n_rot / 2;
  for (size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * rope.frequencies[i];
    const double c = std::cos(angle) * rope.magnitude;
    const double s = std::sin(angle) * rope.magnitude;
    const bool adjacent = pairs == program::RopePairs::kAdjacent;
    double& a = head[adjacent ? 2 * i : i];
    double& b = head[adjacent ? 2 * i + 1 : i + half];
    const double turned_a = a * c - b * s;
    const double turned_b = a * s + b * c;
    a = turned_a;
    b = turned_b;
  }
}

void round_kv_to(TensorType type, std::span<const double> x, std::span<double> out) {
  if (type == TensorType::kF32) {
    std::ranges::copy(x, out.begin());
    return;
  }
  std::vector<float> narrow(x.size());
  std::ranges::transform(x, narrow.begin(), [](double v) { return static_cast<float>(v); });
  if (type == TensorType::kQ8_0) return round_blocks<quant::BlockQ8_0>(narrow, out);
  if (type == TensorType::kQ4_0) return round_blocks<quant::BlockQ4_0>(narrow, out);
  const bool half = type == TensorType::kF16;
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = static_cast<double>(half ? f16_to_f32(f32_to_f16(narrow[i]))
                                      : bf16_to_f32(f32_to_bf16(narrow[i])));
  }
}

void attend_head(const HeadAttention& args, std::span<double> out) {
  const size_t head_dim = args.q.size();
  const size_t stride = args.n_kv_heads * head_dim;
  const double* k = args.kv->k.data() + args.kv_head * head_dim;
  const double* v = args.kv->v.data() + args.kv_head * head_dim;

  const size_t first = args.first_position;
  std::vector<double> weights(args.end_position - first);
  double highest = args.sink.value_or(-std::numeric_limits<double>::infinity());
  for (size_t p = first; p < args.end_position; ++p) {
    double score = 0;
    for (size_t i = 0; i < head_dim; ++i) score += args.q[i] * k[p * stride + i];
    weights[p - first] = softcapped(score * args.scale, args.softcap);
    highest = std::max(highest, weights[p - first]);
  }
  double sum = args.sink ? std::exp(*args.sink - highest) : 0.0;
  for (double& w : weights) {
    w = std::exp(w - highest);
    sum += w;
  }
  std::fill(out.begin(), out.end(), 0.0);
  for (size_t p = first; p < args.end_position; ++p) {
    for (size_t i = 0; i < head_dim; ++i) out[i] += weights[p - first] / sum * v[p * stride + i];
  }
}

}  // namespace godwit::reference
