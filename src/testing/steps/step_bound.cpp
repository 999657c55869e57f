#include "testing/steps/step_bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "quant/formats.h"

namespace godwit::testing {
namespace {

constexpr double kFloatError = 2e-5;
constexpr double kSigmas = 8.0;
// max |d silu(g) / dg| is 1.0998 (at g = 2.4), of gelu 1.1289 (at g = 1.4), and of
// g sigmoid(s g), whatever s, silu's.
constexpr double kGateSlope = 1.13;
// Scores, exponentials and sums of attention in f32, relative to max|v|; measured below 3e-6 at
// 4,096 positions (src/backend/cpu/attention_test.cpp).
constexpr double kAttentionError = 1e-5;
// The delta rule in f32 over some tens of positions, relative to the largest possible result;
// measured below 2e-6 on the tiny models.
constexpr double kDeltaError = 2e-5;

using Values = std::vector<double>;

struct Product {
  Values y;
  Values bound;
};

class Bounder {
 public:
  Bounder(const StepContext& context, program::BufferId output, const StepRow& row)
      : context_(context),
        output_(output),
        token_(static_cast<uint64_t>(row.token.value)),
        inputs_(row.inputs),
        attended_max_(row.attended_values_max) {}

  Values bound(const program::Embed& s) {
    // Decoded to the bit; a scale rounds once.
    if (s.scale == 1.0f) return Values(s.table.cols, 0.0);
    RowValues w(s.table.cols);
    const uint64_t bytes = row_bytes(s.table.type, s.table.cols);
    quant::decode_row(s.table.type, context_.weights[s.table.id].subspan(token_ * bytes, bytes), w);
    Values bounds = widen(w);
    for (double& b : bounds) b = 1e-7 * std::abs(b * static_cast<double>(s.scale));
    return bounds;
  }

  Values bound(const program::Norm& s) {
    Values bounds;
    for (size_t i = 0; i < s.parts.size(); ++i) {
      for (const double value : normed(s.parts[i].norm, inputs_[i])) {
        bounds.push_back(kFloatError * std::abs(value));
      }
    }
    return bounds;
  }

  Values bound(const program::NormProject& s) {
    const Values x = normed(s.norm, inputs_[0]);
    for (const program::Projection& p : s.projections) {
      if (p.out == output_) return multiply(p.weight, p.bias, x).bound;
    }
    return {};
  }

  Values bound(const program::Attend& s) {
    return Values(size_t{s.n_heads} * s.head_dim, kAttentionError * attended_max_);
  }

  // |out_i| is at most sqrt(head_dim) |w_i silu(z_i)|; the state's own errors decay with it.
  Values bound(const program::Recurrent& s) {
    const size_t d = s.head_dim;
    const Values w = vector(s.norm.weight);
    const bool split = s.layout == program::Recurrent::Layout::kSplit;
    const RowValues& source = inputs_[split ? 1 : 0];
    const size_t heads = s.n_heads / s.n_key_heads;
    Values bounds(s.n_heads * d);
    for (size_t i = 0; i < bounds.size(); ++i) {
      const size_t group = i / (heads * d);
      const size_t at =
          split ? i : group * 2 * (d + heads * d) + 2 * d + heads * d + i % (heads * d);
      const auto z = static_cast<double>(source[at]);
      bounds[i] = kDeltaError * std::sqrt(static_cast<double>(d)) *
                  std::abs(w[i % d] * bent(program::Activation::kSilu, z));
    }
    return bounds;
  }

  // The same experts; their weights, each at most 1, err by what the logits err by.
  Values bound(const program::Route& s) {
    const Values x = normed(s.norm, inputs_[0]);
    const Product logits = multiply(s.weight, s.bias, x);
    const double worst = *std::ranges::max_element(logits.bound);
    Values bounds(s.out.width(), 2.0 * worst + 1e-6);
    std::fill_n(bounds.begin(), s.out.n_used, 0.5);
    return bounds;
  }

  Values bound(const program::ExpertGatedUp& s) {
    const Values x = normed(s.norm, inputs_[0]);
    Values bounds;
    for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
      const Values one =
          gated_bound(slot_product(s.gate, s.shared_gate, s.routing, slot, x),
                      slot_product(s.up, s.shared_up, s.routing, slot, x), s.activation);
      bounds.insert(bounds.end(), one.begin(), one.end());
    }
    return bounds;
  }

  Values bound(const program::ExpertDownAdd& s) {
    const size_t ffn = s.down.weight.cols;
    Values bounds(s.down.rows());
    for (size_t slot = 0; slot < s.routing.n_slots(); ++slot) {
      const auto begin = inputs_[0].begin() + static_cast<std::ptrdiff_t>(slot * ffn);
      const uint64_t cols = slot == s.routing.n_used ? s.shared_down->cols : ffn;
      const Values x(begin, begin + static_cast<std::ptrdiff_t>(cols));
      const Product product = slot_product(s.down, s.shared_down, s.routing, slot, x);
      const double share = std::abs(static_cast<double>(inputs_[1][s.routing.n_used + slot]));
      for (size_t i = 0; i < bounds.size(); ++i) {
        bounds[i] += share * (product.bound[i] + kFloatError * std::abs(product.y[i]));
      }
    }
    for (size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] += kFloatError * std::abs(static_cast<double>(inputs_[2][i]));
    }
    return bounds;
  }

  Values bound(const program::ProjectAdd& s) {
    const Product product = multiply(s.weight, s.bias, widen(inputs_[0]));
    Values bounds = s.norm ? normed_bound(*s.norm, product) : product.bound;
    for (size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = bounds[i] * std::abs(static_cast<double>(s.scale)) +
                  kFloatError * std::abs(static_cast<double>(inputs_[1][i]));
    }
    return bounds;
  }

  Values bound(const program::GatedUp& s) {
    const Values x = normed(s.norm, inputs_[0]);
    return gated_bound(multiply(s.gate, s.gate_bias, x), multiply(s.up, s.up_bias, x),
                       s.activation);
  }

  Values bound(const program::Output& s) {
    const Product product = multiply(s.weight, s.bias, normed(s.norm, inputs_[0]));
    Values bounds = product.bound;
    for (double& b : bounds) {
      // The cap's slope is at most 1; its own rounding is relative to the cap.
      b = b * std::abs(static_cast<double>(s.scale)) + 1e-6 * static_cast<double>(s.softcap);
    }
    return bounds;
  }

 private:
  static Values widen(const RowValues& x) { return {x.begin(), x.end()}; }

  // What the gate becomes, and what it is multiplied by.
  static double bent(program::Activation activation, double g) {
    const auto gated = [](double x, double slope) { return x / (1.0 + std::exp(-slope * x)); };
    switch (activation) {
      case program::Activation::kSilu:
        return gated(g, 1.0);
      case program::Activation::kGelu:
        return 0.5 * g *
               (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
      case program::Activation::kSwigluClamped:
        return gated(std::min(g, program::kClamp), program::kClampedSlope);
    }
    return g;
  }

  static double factor(program::Activation activation, double up) {
    if (activation != program::Activation::kSwigluClamped) return up;
    return std::clamp(up, -program::kClamp, program::kClamp) + 1.0;
  }

  static Values gated_bound(const Product& gate, const Product& up,
                            program::Activation activation) {
    Values bounds(gate.y.size());
    for (size_t i = 0; i < bounds.size(); ++i) {
      const double activated = std::abs(bent(activation, gate.y[i]));
      const double times = std::abs(factor(activation, up.y[i]));
      const double d_gate = kGateSlope * gate.bound[i];
      bounds[i] = d_gate * (times + up.bound[i]) + activated * up.bound[i] +
                  kFloatError * activated * times;
    }
    return bounds;
  }

  // What the expert of a slot makes of x.
  Product slot_product(const program::ExpertMatrix& matrix,
                       const std::optional<program::WeightRef>& shared,
                       const program::Routing& routing, size_t slot, const Values& x) const {
    if (slot == routing.n_used) return multiply(*shared, std::nullopt, x);
    // The step after Route reads its result second, as ExpertDownAdd does.
    const auto id = static_cast<uint64_t>(inputs_[1][slot]);
    Product product = multiply_rows(matrix.weight, id * matrix.rows(), matrix.rows(), x);
    if (!matrix.bias) return product;
    const Values all = vector(*matrix.bias);
    add_bias(std::span(all).subspan(id * matrix.rows(), matrix.rows()), product);
    return product;
  }

  static void add_bias(std::span<const double> bias, Product& product) {
    for (size_t r = 0; r < bias.size(); ++r) {
      product.y[r] += bias[r];
      product.bound[r] += kFloatError * std::abs(bias[r]);
    }
  }

  Values vector(const program::WeightRef& ref) const {
    RowValues w(ref.cols);
    quant::decode_row(ref.type, context_.weights[ref.id], w);
    return widen(w);
  }

  Values normed(const std::optional<program::RmsNorm>& n, const RowValues& row) const {
    Values x = widen(row);
    if (!n) return x;
    const Values w = vector(n->weight);
    const double factor = norm_factor(*n, x);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * w[i];
    return x;
  }

  static double norm_factor(const program::RmsNorm& n, const Values& x) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    return 1.0 /
           std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(n.epsilon));
  }

  // The norm of values that err: each error through its own weight, and through the factor f,
  // d f = f^3 / n * sum |y dy|.
  Values normed_bound(const program::RmsNorm& n, const Product& product) const {
    const Values w = vector(n.weight);
    const double factor = norm_factor(n, product.y);
    double through_factor = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      through_factor += std::abs(product.y[i]) * product.bound[i];
    }
    through_factor *= factor * factor / static_cast<double>(w.size());
    Values bounds(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      bounds[i] = factor * std::abs(w[i]) *
                  (product.bound[i] + std::abs(product.y[i]) * (through_factor + kFloatError));
    }
    return bounds;
  }

  // The scale of the last plane for each value, 0 where the backend does not round.
  Values scales(const Values& x, size_t block) const {
    Values s(x.size(), 0.0);
    if (block == 0) return s;
    const double steps = context_.activation_planes == 1 ? 127.0 : 127.0 * 254.0;
    for (size_t begin = 0; begin < x.size(); begin += block) {
      const size_t end = std::min(x.size(), begin + block);
      double highest = 0;
      for (size_t i = begin; i < end; ++i) highest = std::max(highest, std::abs(x[i]));
      for (size_t i = begin; i < end; ++i) s[i] = highest / steps;
    }
    return s;
  }

  Product multiply(const program::WeightRef& ref, const std::optional<program::WeightRef>& bias,
                   const Values& x) const {
    Product product = multiply_rows(ref, 0, ref.rows, x);
    if (!bias) return product;
    add_bias(vector(*bias), product);
    return product;
  }

  // Rows [first, first + n).
  Product multiply_rows(const program::WeightRef& ref, uint64_t first, uint64_t n,
                        const Values& x) const {
    const Values scale = scales(x, context_.activation_block(ref.type));
    Product product{.y = Values(n), .bound = Values(n)};
    const uint64_t bytes = row_bytes(ref.type, ref.cols);
    context_.pool.run([&](size_t thread) {
      RowValues w(ref.cols);
      for (uint64_t r = thread; r < n; r += context_.pool.size()) {
        quant::decode_row(ref.type, context_.weights[ref.id].subspan((first + r) * bytes, bytes),
                          w);
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
  uint64_t token_;
  std::span<const RowValues> inputs_;
  double attended_max_;
};

}  // namespace

std::vector<double> step_bound(const StepContext& context, const program::Operation& operation,
                               program::BufferId output, const StepRow& row) {
  Bounder bounder(context, output, row);
  return std::visit([&](const auto& step) { return bounder.bound(step); }, operation);
}

}  // namespace godwit::testing
