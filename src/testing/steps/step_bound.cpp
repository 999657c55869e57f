#include "testing/steps/step_bound.h"

#include <algorithm>
#include <cmath>

#include "quant/formats.h"

namespace godwit::testing {
namespace {

constexpr double kFloatError = 2e-5;
constexpr double kSigmas = 8.0;
// max |d silu(g) / dg| is 1.0998 (at g = 2.4).
constexpr double kSiluSlope = 1.1;
// Scores, exponentials and sums of attention in f32, relative to max|v|; measured below 3e-6 at
// 4,096 positions (src/backend/cpu/attention_test.cpp).
constexpr double kAttentionError = 1e-5;

using Values = std::vector<double>;

struct Product {
  Values y;
  Values bound;
};

class Bounder {
 public:
  Bounder(const StepContext& context, program::BufferId output, std::span<const RowValues> inputs,
          double attended_values_max)
      : context_(context), output_(output), inputs_(inputs), attended_max_(attended_values_max) {}

  Values bound(const program::Embed& s) { return Values(s.table.cols, 0.0); }

  Values bound(const program::NormProject& s) {
    const Values x = norm(s.norm, inputs_[0]);
    for (const program::Projection& p : s.projections) {
      if (p.out == output_) return multiply(p.weight, x).bound;
    }
    return {};
  }

  Values bound(const program::Attend& s) {
    return Values(size_t{s.n_heads} * s.head_dim, kAttentionError * attended_max_);
  }

  Values bound(const program::ProjectAdd& s) {
    Values bounds = multiply(s.weight, widen(inputs_[0])).bound;
    for (size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] += kFloatError * std::abs(static_cast<double>(inputs_[1][i]));
    }
    return bounds;
  }

  Values bound(const program::GatedUp& s) {
    const Values x = norm(s.norm, inputs_[0]);
    const Product gate = multiply(s.gate, x);
    const Product up = multiply(s.up, x);
    Values bounds(gate.y.size());
    for (size_t i = 0; i < bounds.size(); ++i) {
      const double silu = gate.y[i] / (1.0 + std::exp(-gate.y[i]));
      const double d_gate = kSiluSlope * gate.bound[i];
      bounds[i] = d_gate * (std::abs(up.y[i]) + up.bound[i]) + std::abs(silu) * up.bound[i] +
                  kFloatError * std::abs(silu * up.y[i]);
    }
    return bounds;
  }

  Values bound(const program::Output& s) {
    return multiply(s.weight, norm(s.norm, inputs_[0])).bound;
  }

 private:
  static Values widen(const RowValues& x) { return {x.begin(), x.end()}; }

  Values norm(const program::RmsNorm& n, const RowValues& x) const {
    RowValues w(n.weight.cols);
    quant::decode_row(n.weight.type, context_.weights[n.weight.id], w);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double factor =
        1.0 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(n.epsilon));
    Values out(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      out[i] = static_cast<double>(x[i]) * factor * static_cast<double>(w[i]);
    }
    return out;
  }

  // The scale of the second plane for each value, 0 where the backend does not round.
  static Values scales(const Values& x, size_t block) {
    Values s(x.size(), 0.0);
    if (block == 0) return s;
    for (size_t begin = 0; begin < x.size(); begin += block) {
      const size_t end = std::min(x.size(), begin + block);
      double highest = 0;
      for (size_t i = begin; i < end; ++i) highest = std::max(highest, std::abs(x[i]));
      for (size_t i = begin; i < end; ++i) s[i] = highest / (127.0 * 254.0);
    }
    return s;
  }

  Product multiply(const program::WeightRef& ref, const Values& x) const {
    const Values scale = scales(x, context_.activation_block(ref.type));
    Product product{.y = Values(ref.rows), .bound = Values(ref.rows)};
    const uint64_t bytes = row_bytes(ref.type, ref.cols);
    context_.pool.run([&](size_t thread) {
      RowValues w(ref.cols);
      for (uint64_t r = thread; r < ref.rows; r += context_.pool.size()) {
        quant::decode_row(ref.type, context_.weights[ref.id].subspan(r * bytes, bytes), w);
        double sum = 0;
        double magnitude = 0;
        double variance = 0;
        double worst = 0;
        for (size_t c = 0; c < w.size(); ++c) {
          const auto weight = static_cast<double>(w[c]);
          sum += weight * x[c];
          magnitude += std::abs(weight * x[c]);
          variance += weight * weight * scale[c] * scale[c] / 12.0;
          worst += std::abs(weight) * scale[c] / 2.0;
        }
        product.y[r] = sum;
        product.bound[r] = std::min(kSigmas * std::sqrt(variance), worst) + kFloatError * magnitude;
      }
    });
    return product;
  }

  const StepContext& context_;
  program::BufferId output_;
  std::span<const RowValues> inputs_;
  double attended_max_;
};

}  // namespace

std::vector<double> step_bound(const StepContext& context, const program::Operation& operation,
                               program::BufferId output, std::span<const RowValues> inputs,
                               double attended_values_max) {
  Bounder bounder(context, output, inputs, attended_values_max);
  return std::visit([&](const auto& step) { return bounder.bound(step); }, operation);
}

}  // namespace godwit::testing
