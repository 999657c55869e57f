#include "layers_by_hand.h"

#include <algorithm>
#include <cmath>

namespace godwit::testing {
namespace {

using Values = std::vector<double>;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

class DeltaLayer {
 public:
  DeltaLayer(const program::Recurrent& step, const DeltaPrompt& prompt, DeltaMistake mistake)
      : s_(step), p_(prompt), mistake_(mistake), channels_(prompt.qkv.size() / prompt.n_rows) {}

  std::vector<float> run() const {
    std::vector<float> out(p_.n_rows * s_.n_heads * s_.head_dim);
    for (uint32_t head = 0; head < s_.n_heads; ++head) run_head(head, out);
    return out;
  }

 private:
  [[nodiscard]] bool has(DeltaMistake mistake) const { return mistake_ == mistake; }

  [[nodiscard]] double mixed(size_t t, size_t channel) const {
    const size_t taps = s_.conv.cols;
    double sum = 0;
    for (size_t back = 0; back < taps && back <= t; ++back) {
      const auto raw = static_cast<double>(p_.qkv[(t - back) * channels_ + channel]);
      const size_t tap = has(DeltaMistake::kTapsNewestFirst) ? back : taps - 1 - back;
      sum += static_cast<double>(p_.conv[channel * taps + tap]) *
             (has(DeltaMistake::kSiluBeforeConvolution) ? silu(raw) : raw);
    }
    return has(DeltaMistake::kSiluBeforeConvolution) ? sum : silu(sum);
  }

  // head_dim channels; `part` 0: q, 1: k, both of a key head, 2: v of a value head.
  [[nodiscard]] Values channels_of(size_t t, size_t part, size_t head) const {
    const size_t d = s_.head_dim;
    Values x(d);
    for (size_t i = 0; i < d; ++i) x[i] = mixed(t, (part * s_.n_key_heads + head) * d + i);
    if (part == 2 || has(DeltaMistake::kKeysOfAnyLength)) return x;
    double squares = 0;
    for (const double value : x) squares += value * value;
    for (double& value : x) value /= std::sqrt(squares + 1e-6);
    return x;
  }

  struct Gates {
    double decay;
    double beta;
  };

  [[nodiscard]] Gates gates(size_t t, uint32_t head) const {
    const size_t per_key = s_.n_heads / s_.n_key_heads;
    size_t at_b = t * s_.n_heads + head;
    size_t at_a = at_b;
    if (p_.a.empty()) {
      at_b = t * 2 * s_.n_heads + head / per_key * 2 * per_key + head % per_key;
      at_a = at_b + per_key;
    }
    const auto b = static_cast<double>(p_.b[at_b]);
    const double a = static_cast<double>(p_.a.empty() ? p_.b[at_a] : p_.a[at_a]) +
                     static_cast<double>(p_.dt_bias[head]);
    const double step = has(DeltaMistake::kDecayWithoutSoftplus) ? a : std::log1p(std::exp(a));
    return {.decay = std::exp(step * static_cast<double>(p_.decay[head])),
            .beta = has(DeltaMistake::kSiluOfB) ? silu(b) : sigmoid(b)};
  }

  void run_head(uint32_t head, std::vector<float>& out) const {
    const size_t d = s_.head_dim;
    const size_t key_head = s_.key_head_of(head);
    Values state(d * d);  // [v, k]
    for (size_t t = 0; t < p_.n_rows; ++t) {
      const Values q = channels_of(t, 0, key_head);
      const Values k = channels_of(t, 1, key_head);
      const Values v = channels_of(t, 2, head);
      const Gates g = gates(t, head);
      Values read(d);
      for (size_t i = 0; i < d; ++i) {
        const std::span<double> row = std::span(state).subspan(i * d, d);
        const double before = has(DeltaMistake::kPredictsBeforeDecay) ? 1.0 : g.decay;
        double predicted = 0;
        for (size_t j = 0; j < d; ++j) predicted += before * row[j] * k[j];
        for (size_t j = 0; j < d; ++j) {
          const double decayed = g.decay * row[j];
          row[j] = decayed + g.beta * (v[i] - predicted) * k[j];
          read[i] += (has(DeltaMistake::kReadsBeforeUpdate) ? decayed : row[j]) * q[j];
        }
        read[i] /= std::sqrt(static_cast<double>(d));
      }
      finish(t, head, read, out);
    }
  }

  void finish(size_t t, size_t head, Values read, std::vector<float>& out) const {
    const size_t d = s_.head_dim;
    const size_t at = (t * s_.n_heads + head) * d;
    Values gate(d);
    for (size_t i = 0; i < d; ++i) {
      const auto z = static_cast<double>(p_.z[at + i]);
      gate[i] = has(DeltaMistake::kSigmoidOfZ) ? sigmoid(z) : silu(z);
      if (has(DeltaMistake::kGateBeforeNorm)) read[i] *= gate[i];
    }
    double squares = 0;
    for (const double value : read) squares += value * value;
    const double root =
        std::sqrt(squares / static_cast<double>(d) + static_cast<double>(s_.norm.epsilon));
    for (size_t i = 0; i < d; ++i) {
      const double normed = read[i] / root * static_cast<double>(p_.norm[i]);
      out[at + i] =
          static_cast<float>(has(DeltaMistake::kGateBeforeNorm) ? normed : normed * gate[i]);
    }
  }

  const program::Recurrent& s_;
  const DeltaPrompt& p_;
  DeltaMistake mistake_;
  size_t channels_;
};

}  // namespace

std::vector<float> delta_by_hand(const program::Recurrent& step, const DeltaPrompt& prompt,
                                 DeltaMistake mistake) {
  return DeltaLayer(step, prompt, mistake).run();
}

double clamped_by_hand(double gate, double up, ClampMistake mistake) {
  const bool values_clamped =
      mistake != ClampMistake::kNotClamped && mistake != ClampMistake::kValuesNotClamped;
  if (mistake != ClampMistake::kNotClamped) gate = std::min(gate, 7.0);
  if (values_clamped) up = std::min(std::max(up, -7.0), 7.0);
  const double slope = mistake == ClampMistake::kPlainSlope ? 1.0 : 1.702;
  return gate * sigmoid(slope * gate) * (up + (mistake == ClampMistake::kNothingAdded ? 0.0 : 1.0));
}

}  // namespace godwit::testing
