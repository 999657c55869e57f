// What the fixtures of transformers can see: each mistake planted here, in a step, in a weight or
// in a layer computed by hand, moves the logits of the reference backend past the tolerance that
// the models themselves keep within. The layers by hand, without a mistake, keep within it too.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "layers_by_hand.h"
#include "mutant_model.h"

namespace godwit {
namespace {

using program::Attend;
using program::ExpertGatedUp;
using program::Recurrent;
using testing::ClampMistake;
using testing::DeltaMistake;
using testing::kPositions;
using testing::MutantModel;

MutantModel::AfterStep delta_layers(DeltaMistake mistake) {
  return [mistake](MutantModel& m, const program::Step& step) {
    const auto* s = std::get_if<Recurrent>(&step.operation);
    if (s == nullptr) return;
    const testing::DeltaPrompt prompt{.n_rows = kPositions,
                                      .qkv = m.read(s->qkv),
                                      .z = m.read(*s->z),
                                      .b = m.read(s->b),
                                      .a = s->a ? m.read(*s->a) : std::vector<float>{},
                                      .conv = m.weight(s->conv),
                                      .dt_bias = m.weight(s->dt_bias),
                                      .decay = m.weight(s->decay),
                                      .norm = m.weight(s->norm.weight)};
    m.write(s->out, testing::delta_by_hand(*s, prompt, mistake));
  };
}

double dot(std::span<const float> w, std::span<const double> x) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += static_cast<double>(w[i]) * x[i];
  return sum;
}

std::vector<double> normed_row(std::span<const float> x, std::span<const float> weight,
                               float epsilon) {
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  const double root =
      std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(epsilon));
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = static_cast<double>(x[i]) / root * static_cast<double>(weight[i]);
  }
  return y;
}

MutantModel::AfterStep clamped_experts(ClampMistake mistake) {
  return [mistake](MutantModel& m, const program::Step& step) {
    const auto* s = std::get_if<ExpertGatedUp>(&step.operation);
    if (s == nullptr) return;
    const std::vector<float> in = m.read(s->in);
    const std::vector<float> routing = m.read(s->routing.buffer);
    const std::vector<float> norm = m.weight(s->norm.weight);
    const size_t dim = norm.size();
    const size_t ffn = s->gate.rows();
    std::vector<float> out(kPositions * s->routing.n_used * ffn);
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t slot = i / ffn;
      const size_t t = slot / s->routing.n_used;
      const auto x = normed_row(std::span(in).subspan(t * dim, dim), norm, s->norm.epsilon);
      const auto expert =
          static_cast<size_t>(routing[t * s->routing.width() + slot % s->routing.n_used]);
      const size_t row = expert * ffn + i % ffn;
      const auto product = [&](const program::ExpertMatrix& matrix) {
        return dot(m.weight_row(matrix.weight, row), x) +
               static_cast<double>(m.weight(*matrix.bias)[row]);
      };
      out[i] =
          static_cast<float>(testing::clamped_by_hand(product(s->gate), product(s->up), mistake));
    }
    m.write(s->out, out);
  };
}

// What the gates of attention become in place of sigmoid(gate), whose product is there already.
MutantModel::AfterStep attention_gates(
    const std::function<std::vector<double>(MutantModel&, const Attend&, std::span<const float>)>&
        gates_of_head) {
  return [gates_of_head](MutantModel& m, const program::Step& step) {
    const auto* s = std::get_if<Attend>(&step.operation);
    if (s == nullptr) return;
    const std::vector<float> q = m.read(s->q);
    std::vector<float> out = m.read(s->out);
    const size_t d = s->head_dim;
    for (size_t head = 0; head < kPositions * s->n_heads; ++head) {
      const auto gate = std::span(q).subspan((2 * head + 1) * d, d);
      const std::vector<double> factors = gates_of_head(m, *s, gate);
      for (size_t i = 0; i < d; ++i) {
        const double sigmoid = 1.0 / (1.0 + std::exp(-static_cast<double>(gate[i])));
        out[head * d + i] =
            static_cast<float>(static_cast<double>(out[head * d + i]) * factors[i] / sigmoid);
      }
    }
    m.write(s->out, out);
  };
}

std::vector<double> silu_gates(MutantModel&, const Attend&, std::span<const float> gate) {
  std::vector<double> factors;
  for (const float g : gate) {
    factors.push_back(static_cast<double>(g) / (1.0 + std::exp(-static_cast<double>(g))));
  }
  return factors;
}

std::vector<double> normed_gates(MutantModel& m, const Attend& s, std::span<const float> gate) {
  std::vector<double> factors = normed_row(gate, m.weight(s.q_norm->weight), s.q_norm->epsilon);
  for (double& g : factors) g = 1.0 / (1.0 + std::exp(-g));
  return factors;
}

struct FixtureMutant {
  std::string name;
  std::string fixture;
  void (*plant)(MutantModel&) = nullptr;
  MutantModel::AfterStep after = {};
};

void PrintTo(const FixtureMutant& mutant, std::ostream* out) { *out << mutant.name; }

template <class Kind, auto Member>
void reset_each(MutantModel& m) {
  m.each<Kind>([](Kind& s) { s.*Member = {}; });
}

void change_pairing(MutantModel& m) {
  m.each<Recurrent>([](auto& s) {
    s.pairing = s.pairing == Recurrent::Pairing::kModulo ? Recurrent::Pairing::kNeighbours
                                                         : Recurrent::Pairing::kModulo;
  });
}

// As if ssm_ba held b of all heads, then a of all.
void read_ba_in_halves(MutantModel& m) {
  std::vector<std::pair<program::BufferId, program::WeightRef>> projected;
  m.each<program::NormProject>([&](auto& s) {
    for (const auto& p : s.projections) projected.emplace_back(p.out, p.weight);
  });
  std::vector<Recurrent> layers;
  m.each<Recurrent>([&](auto& s) { layers.push_back(s); });
  const Recurrent& s = layers.front();
  for (const auto& [out, weight] : projected) {
    if (!(out == s.b)) continue;
    const size_t per_key = s.heads_per_key();
    m.permute_rows(weight, [&](size_t i) {
      const size_t head = i / (2 * per_key) * per_key + i % per_key;
      return i % (2 * per_key) < per_key ? head : s.n_heads + head;
    });
  }
}

// As if attn_q held the queries of all heads, then the gates of all.
void read_gates_in_halves(MutantModel& m) {
  std::vector<program::WeightRef> weights;
  std::vector<Attend> layers;
  m.each<Attend>([&](auto& s) { layers.push_back(s); });
  m.each<program::NormProject>([&](auto& s) {
    if (s.projections[0].out == layers[0].q) weights.push_back(s.projections[0].weight);
  });
  for (const program::WeightRef& weight : weights) {
    m.permute_rows(weight, [&](size_t i) {
      const size_t d = layers[0].head_dim;
      const size_t head = i / (2 * d);
      return i % (2 * d) < d ? head * d + i % d : (layers[0].n_heads + head) * d + i % d;
    });
  }
}

void add_to_norms(MutantModel& m, float change) {
  std::vector<program::WeightRef> norms;
  m.each<program::NormProject>([&](auto& s) { norms.push_back(s.norm->weight); });
  m.each<Attend>([&](auto& s) {
    norms.push_back(s.q_norm->weight);
    norms.push_back(s.k_norm->weight);
  });
  for (const auto& norm : norms) m.change_values(norm, [&](float w) { return w + change; });
}

void turn_whole_heads(MutantModel& m) {
  m.each<Attend>([&](auto& s) {
    program::Rope& rope = m.program().ropes[s.rope.value];
    rope.n_rot = s.head_dim;
    rope.frequencies.clear();
    for (uint32_t i = 0; i < s.head_dim; i += 2) {
      rope.frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / s.head_dim));
    }
  });
}

void turn_half_as_much(MutantModel& m) {
  m.program().ropes[0].n_rot /= 2;
  m.program().ropes[0].frequencies.resize(m.program().ropes[0].n_rot / 2);
}

void drop_renormalisation(MutantModel& m) {
  m.each<program::Route>([](auto& s) { s.renormalise = false; });
}

template <auto Matrix>
void drop_expert_bias(MutantModel& m) {
  m.each<ExpertGatedUp>([](auto& s) { (s.*Matrix).bias.reset(); });
}

const FixtureMutant kMutants[] = {
    {"ValueHeadsPairModuloKeyHeads", "qwen3next", change_pairing},
    {"TiledValueHeadsPairWithNeighbours", "qwen35moe", change_pairing},
    {"BetaAndAlphaOfAllHeadsInHalves", "qwen3next", read_ba_in_halves},
    {"BetaAndAlphaSwapped", "qwen35moe",
     [](MutantModel& m) { m.each<Recurrent>([](auto& s) { std::swap(s.b, *s.a); }); }},
    {"DecayExponentiatedAgain", "qwen3next",
     [](MutantModel& m) {
       m.each<Recurrent>(
           [&](auto& s) { m.change_values(s.decay, [](float a) { return -std::exp(a); }); });
     }},
    {"DecayOfTheWrongSign", "qwen3next",
     [](MutantModel& m) {
       m.each<Recurrent>([&](auto& s) { m.change_values(s.decay, [](float a) { return -a; }); });
     }},
    {"QueriesAndGatesOfAllHeadsInHalves", "qwen3next", read_gates_in_halves},
    {"NormsOneTooSmall", "qwen3next", [](MutantModel& m) { add_to_norms(m, -1.0f); }},
    {"NormAfterTheDeltaRuleOneTooLarge", "qwen3next",
     [](MutantModel& m) {
       m.each<Recurrent>(
           [&](auto& s) { m.change_values(s.norm.weight, [](float w) { return w + 1.0f; }); });
     }},
    {"WholeHeadsTurn", "qwen3next", turn_whole_heads},
    {"HalfTheDimensionsTurn", "qwen3next", turn_half_as_much},
    {"HalfTheDimensionsTurnIn35", "qwen35", turn_half_as_much},
    {"WeightsOfExpertsNotRenormalised", "qwen3next", drop_renormalisation},
    {"WeightsOfExpertsNotRenormalisedIn3", "qwen3moe", drop_renormalisation},
    {"WeightsOfExpertsSoftmaxedOverAll", "gpt_oss", drop_renormalisation},
    {"SharedExpertAlwaysWhole", "qwen35moe", nullptr,
     [](MutantModel& m, const program::Step& step) {
       const auto* s = std::get_if<program::Route>(&step.operation);
       if (s == nullptr) return;
       std::vector<float> routing = m.read(s->out.buffer);
       for (size_t t = 1; t <= kPositions; ++t) routing[t * s->out.width() - 1] = 1.0f;
       m.write(s->out.buffer, routing);
     }},
    {"SiluGatesOfAttention", "qwen3next", nullptr, attention_gates(silu_gates)},
    {"NormedGatesOfAttention", "qwen3next", nullptr, attention_gates(normed_gates)},
    {"PredictsBeforeDecay", "qwen3next", nullptr, delta_layers(DeltaMistake::kPredictsBeforeDecay)},
    {"ReadsBeforeUpdate", "qwen3next", nullptr, delta_layers(DeltaMistake::kReadsBeforeUpdate)},
    {"SiluBeforeTheConvolution", "qwen3next", nullptr,
     delta_layers(DeltaMistake::kSiluBeforeConvolution)},
    {"TapsNewestFirst", "qwen3next", nullptr, delta_layers(DeltaMistake::kTapsNewestFirst)},
    {"KeysOfAnyLength", "qwen3next", nullptr, delta_layers(DeltaMistake::kKeysOfAnyLength)},
    {"SigmoidOfZ", "qwen3next", nullptr, delta_layers(DeltaMistake::kSigmoidOfZ)},
    {"GateBeforeTheNorm", "qwen3next", nullptr, delta_layers(DeltaMistake::kGateBeforeNorm)},
    {"SiluOfBeta", "qwen3next", nullptr, delta_layers(DeltaMistake::kSiluOfB)},
    {"DecayWithoutSoftplus", "qwen35", nullptr, delta_layers(DeltaMistake::kDecayWithoutSoftplus)},
    {"SinksDropped", "gpt_oss", reset_each<Attend, &Attend::sinks>},
    {"SinksOfTheNextHead", "gpt_oss",
     [](MutantModel& m) {
       m.each<Attend>([&](auto& s) {
         const std::vector<float> sinks = m.weight(*s.sinks);
         size_t next = 0;
         m.change_values(*s.sinks, [&](float) { return sinks[++next % sinks.size()]; });
       });
     }},
    {"SinksScaled", "gpt_oss",
     [](MutantModel& m) {
       m.each<Attend>(
           [&](auto& s) { m.change_values(*s.sinks, [&](float sink) { return sink * s.scale; }); });
     }},
    {"WindowsInTheOtherLayers", "gpt_oss",
     [](MutantModel& m) { m.each<Attend>([](auto& s) { s.window = s.window == 0 ? 9 : 0; }); }},
    {"PlainRopeMagnitude", "gpt_oss", [](MutantModel& m) { m.program().ropes[0].magnitude = 1.0; }},
    {"SiluForClampedSwiglu", "gpt_oss",
     [](MutantModel& m) {
       m.each<ExpertGatedUp>([](auto& s) { s.activation = program::Activation::kSilu; });
     }},
    {"NothingClamped", "gpt_oss", nullptr, clamped_experts(ClampMistake::kNotClamped)},
    {"ValuesNotClamped", "gpt_oss", nullptr, clamped_experts(ClampMistake::kValuesNotClamped)},
    {"SlopeOne", "gpt_oss", nullptr, clamped_experts(ClampMistake::kPlainSlope)},
    {"NothingAddedToValues", "gpt_oss", nullptr, clamped_experts(ClampMistake::kNothingAdded)},
    {"BiasOfTheRouterDropped", "gpt_oss", reset_each<program::Route, &program::Route::bias>},
    {"BiasOfGatesDropped", "gpt_oss", drop_expert_bias<&ExpertGatedUp::gate>},
    {"BiasOfValuesDropped", "gpt_oss", drop_expert_bias<&ExpertGatedUp::up>},
    {"BiasOfExpertsResultsDropped", "gpt_oss",
     [](MutantModel& m) { m.each<program::ExpertDownAdd>([](auto& s) { s.down.bias.reset(); }); }},
};

class FixtureMutants : public ::testing::TestWithParam<FixtureMutant> {};

TEST_P(FixtureMutants, AreCaught) {
  MutantModel model(GetParam().fixture);
  if (GetParam().plant != nullptr) GetParam().plant(model);
  const double error = model.error("reference", GetParam().after);
  EXPECT_GT(error, testing::kTransformersTolerance);
  RecordProperty("relative_error", fmt::format("{:.1e}", error));
}

INSTANTIATE_TEST_SUITE_P(, FixtureMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

TEST(LayersByHand, AgreeWithTransformersWhereNothingIsWrong) {
  for (const char* fixture : {"qwen3next", "qwen35", "qwen35moe"}) {
    EXPECT_LE(MutantModel(fixture).error("reference", delta_layers(DeltaMistake::kNone)),
              testing::kTransformersTolerance)
        << fixture;
  }
  EXPECT_LE(MutantModel("gpt_oss").error("reference", clamped_experts(ClampMistake::kNone)),
            testing::kTransformersTolerance);
}

}  // namespace
}  // namespace godwit
