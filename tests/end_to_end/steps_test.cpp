// The step check: the CPU backend lies within its derived bounds for every type and for every tiny
// model of tests/fixtures/transformers, and the check fails for each planted mistake in what a step
// is told to do.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <tuple>

#include "apps/synth_arch.h"
#include "apps/synth_model.h"
#include "backend/cpu/kernel_table.h"
#include "backend/registry.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "os/thread_pool.h"
#include "quant/formats.h"
#include "testing/steps/step_check.h"
#include "testing/temporary_folder.h"
#include "transformers_fixtures.h"

namespace godwit {
namespace {

size_t cpu_block(TensorType type) {
  return cpu::activation_block(cpu::find_matvec_kernel(type, Isa::kGeneric)->activation);
}

// A tiny synthetic model on disk, opened.
struct TinyModel {
  testing::TemporaryFolder folder;
  std::optional<gguf::File> file;
  model::Model model;
};

std::unique_ptr<TinyModel> make_tiny(const apps::SynthOptions& options) {
  auto tiny = std::make_unique<TinyModel>();
  const std::filesystem::path path = tiny->folder.path() / "tiny.gguf";
  const Result<apps::SynthModel> plan = apps::plan_synth_model(options);
  EXPECT_TRUE(plan) << plan.error().message;
  const Status written = apps::write_synth_model(*plan, path, {});
  EXPECT_TRUE(written) << written.error().message;
  Result<gguf::File> file = gguf::File::open(path);
  EXPECT_TRUE(file) << file.error().message;
  tiny->file.emplace(std::move(*file));
  Result<model::Model> model = model::build_model(*tiny->file);
  EXPECT_TRUE(model) << model.error().message;
  tiny->model = std::move(*model);
  return tiny;
}

// One of tests/fixtures/transformers.
std::unique_ptr<TinyModel> open_fixture(const std::string& name) {
  auto tiny = std::make_unique<TinyModel>();
  Result<gguf::File> file = gguf::File::open(testing::transformers_fixture(name + ".gguf"));
  EXPECT_TRUE(file) << file.error().message;
  tiny->file.emplace(std::move(*file));
  Result<model::Model> model = model::build_model(*tiny->file, {.with_mtp = true});
  EXPECT_TRUE(model) << model.error().message;
  tiny->model = std::move(*model);
  return tiny;
}

apps::SynthOptions tiny_options(const std::string& arch, TensorType type) {
  apps::SynthOptions options;
  options.shape = *apps::find_shape("tiny");
  options.shape.arch = arch;
  options.shape.n_layers = 2;
  const apps::SynthArch& parts = *apps::find_synth_arch(arch);
  if (parts.experts) options.shape.experts = {.count = 16, .used = 4, .ffn = 256};
  if (parts.shared) options.shape.experts.shared_ffn = 256;
  if (parts.hybrid) {
    options.shape.recurrence = {.key_heads = 2, .value_heads = 4, .head_dim = 64, .interval = 2};
  }
  options.matrix_type = type;
  options.seed = 7;
  return options;
}

// The worst difference over all steps when `subject_program` runs on the CPU backend.
testing::StepDifference worst_step(const TinyModel& tiny, const program::Program& subject_program) {
  auto oracle = backend::make_backend("reference", {.n_threads = 2});
  auto subject = backend::make_backend("cpu", {.n_threads = 2});
  EXPECT_TRUE(oracle && subject);
  EXPECT_TRUE((*oracle)->load(tiny.model.program, tiny.model.weights, {}));
  EXPECT_TRUE((*subject)->load(subject_program, tiny.model.weights, {}));
  ThreadPool pool(2);
  const testing::StepContext context{.program = tiny.model.program,
                                     .weights = tiny.model.weights,
                                     .activation_block = cpu_block,
                                     .pool = pool};
  testing::StepDifference worst;
  const Status ran =
      testing::check_steps(context, **oracle, **subject, {.n_prompt = 21, .n_decode = 2, .seed = 3},
                           [&](const testing::StepDifference& d) {
                             if (d.ratio() > worst.ratio()) worst = d;
                             return true;
                           });
  EXPECT_TRUE(ran);
  return worst;
}

// Every type in every architecture: what docs/COMPATIBILITY.md promises.
class StepsOfTypeAndArchitecture
    : public ::testing::TestWithParam<std::tuple<TensorType, std::string>> {};

TEST_P(StepsOfTypeAndArchitecture, LieWithinTheirBoundsOnTheCpu) {
  const auto& [type, arch] = GetParam();
  const auto tiny = make_tiny(tiny_options(arch, type));
  const testing::StepDifference worst = worst_step(*tiny, tiny->model.program);
  EXPECT_LE(worst.ratio(), 1.0) << worst.step << ", " << worst.buffer << ", " << worst.position;
  EXPECT_GT(worst.ratio(), 0.0)
      << "the CPU and the oracle agree to the bit: is one of them the other?";
}

// Those with a kernel; cpu/kernel_table_test.cpp tells which those must be.
std::vector<TensorType> all_types() {
  std::vector<TensorType> types;
  for (const quant::Format& format : quant::formats()) {
    if (cpu::find_packing(format.type) != nullptr) types.push_back(format.type);
  }
  return types;
}

std::vector<std::string> all_architectures() {
  std::vector<std::string> names;
  for (const apps::SynthArch& arch : apps::synth_archs()) names.emplace_back(arch.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, StepsOfTypeAndArchitecture,
                         ::testing::Combine(::testing::ValuesIn(all_types()),
                                            ::testing::ValuesIn(all_architectures())),
                         [](const auto& test) {
                           std::string arch = std::get<1>(test.param);
                           std::erase(arch, '-');  // no part of a test's name
                           return std::string(tensor_type_name(std::get<0>(test.param))) + "_" +
                                  arch;
                         });

class StepsOfModel : public ::testing::TestWithParam<std::string> {};

TEST_P(StepsOfModel, LieWithinTheirBoundsOnTheCpu) {
  const auto tiny = open_fixture(GetParam());
  const testing::StepDifference worst = worst_step(*tiny, tiny->model.program);
  EXPECT_LE(worst.ratio(), 1.0) << worst.step << ", " << worst.buffer << ", " << worst.position;
  EXPECT_GT(worst.ratio(), 0.0);
}

INSTANTIATE_TEST_SUITE_P(, StepsOfModel, ::testing::ValuesIn(testing::transformers_models()),
                         [](const auto& test) { return test.param; });

// A planted mistake: what to change in each step of the kind it applies to.
struct Mutant {
  std::string name;
  void (*plant)(program::Program&);
  std::string fixture = {};  // the model it is planted in; "" for a synthetic one
};

void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

template <class Kind, class Change>
void change_each(program::Program& program, Change change) {
  for (program::Step& step : program.main) {
    if (auto* operation = std::get_if<Kind>(&step.operation)) change(*operation);
  }
}

const Mutant kMutants[] = {
    {"RopePairs",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) {
         s.pairs = s.pairs == program::RopePairs::kHalves ? program::RopePairs::kAdjacent
                                                          : program::RopePairs::kHalves;
       });
     }},
    {"RopeMagnitude", [](program::Program& p) { p.ropes[0].magnitude = 1.01; }},
    {"RopeFrequency", [](program::Program& p) { p.ropes[0].frequencies[3] *= 1.01; }},
    {"HalfOfTheHeadTurns",
     [](program::Program& p) {
       p.ropes[0].n_rot /= 2;
       p.ropes[0].frequencies.resize(p.ropes[0].n_rot / 2);
     }},
    {"AttentionScale",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.scale *= 1.02f; });
     }},
    {"NormEpsilon",
     [](program::Program& p) {
       change_each<program::NormProject>(p, [](auto& s) { s.norm->epsilon += 0.05f; });
     }},
    {"BiasDropped",
     [](program::Program& p) {
       change_each<program::NormProject>(p, [](auto& s) { s.projections[1].bias.reset(); });
     }},
    {"KeysAndValuesSwapped",
     [](program::Program& p) {
       change_each<program::NormProject>(
           p, [](auto& s) { std::swap(s.projections[1].out, s.projections[2].out); });
     }},
    {"GateAndUpSwapped",
     [](program::Program& p) {
       change_each<program::GatedUp>(p, [](auto& s) { std::swap(s.gate, s.up); });
     }},
    {"ResidualOfAnotherLayer",
     [](program::Program& p) {
       std::vector<program::ProjectAdd*> adds;
       change_each<program::ProjectAdd>(p, [&](auto& s) { adds.push_back(&s); });
       std::swap(adds[1]->weight, adds[3]->weight);
     }},
    {"OutputNormOfALayer",
     [](program::Program& p) {
       program::RmsNorm norm;
       change_each<program::NormProject>(p, [&](auto& s) { norm = *s.norm; });
       change_each<program::Output>(p, [&](auto& s) { s.norm = norm; });
     }},
    {"AttentionGateDropped",
     [](program::Program& p) { change_each<program::Attend>(p, [](auto& s) { s.gated = false; }); },
     "qwen3next"},
    {"ConvolutionOfTheOtherLayer",
     [](program::Program& p) {
       std::vector<program::Recurrent*> layers;
       change_each<program::Recurrent>(p, [&](auto& s) { layers.push_back(&s); });
       std::swap(layers[0]->conv, layers[1]->conv);
     },
     "qwen3next"},
    {"DecayOfTheOtherLayer",
     [](program::Program& p) {
       std::vector<program::Recurrent*> layers;
       change_each<program::Recurrent>(p, [&](auto& s) { layers.push_back(&s); });
       std::swap(layers[0]->decay, layers[1]->decay);
     },
     "qwen3next"},
    {"TimeStepBiasAndDecaySwapped",
     [](program::Program& p) {
       change_each<program::Recurrent>(p, [](auto& s) { std::swap(s.dt_bias, s.decay); });
     },
     "qwen3next"},
    {"SharedExpertDropped",
     [](program::Program& p) {
       change_each<program::ExpertDownAdd>(p, [](auto& s) { s.routing.shared = false; });
     },
     "qwen3next"},
    {"WeightsOfExpertsNotRenormalised",
     [](program::Program& p) {
       change_each<program::Route>(p, [](auto& s) { s.renormalise = false; });
     },
     "qwen3moe"},
    {"EmbeddingScale",
     [](program::Program& p) {
       change_each<program::Embed>(p, [](auto& s) { s.scale *= 1.0001f; });
     },
     "gemma2"},
    {"ScoreCapDropped",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.softcap = 0.0f; });
     },
     "gemma2"},
    {"LogitCapDropped",
     [](program::Program& p) {
       change_each<program::Output>(p, [](auto& s) { s.softcap = 0.0f; });
     },
     "gemma2"},
    {"NormOfWhatIsAddedDropped",
     [](program::Program& p) {
       change_each<program::ProjectAdd>(p, [](auto& s) { s.norm.reset(); });
     },
     "gemma2"},
    {"WindowOneShorter",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.window -= s.window != 0 ? 1 : 0; });
     },
     "gemma2"},
    {"SiluForGelu",
     [](program::Program& p) {
       change_each<program::GatedUp>(p, [](auto& s) { s.activation = program::Activation::kSilu; });
     },
     "gemma2"},
    {"RopeOfTheOtherLayers",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.rope.value = 1 - s.rope.value; });
     },
     "gemma3"},
    {"RopeWhereThereIsNone",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.rope.value = 0; });
     },
     "smollm3"},
    {"QueryNormDropped",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.q_norm.reset(); });
     },
     "qwen3"},
    {"NormOfAllKeysDropped",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.k_norm.reset(); });
     },
     "olmo2"},
    {"QueryScaleDropped",
     [](program::Program& p) {
       change_each<program::Attend>(p, [](auto& s) { s.q_scale.reset(); });
     },
     "mistral3"},
    {"ResidualScale",
     [](program::Program& p) {
       change_each<program::ProjectAdd>(p, [](auto& s) { s.scale *= 1.001f; });
     },
     "granite"},
    {"LogitScale",
     [](program::Program& p) {
       change_each<program::Output>(p, [](auto& s) { s.scale *= 1.001f; });
     },
     "granite"},
    {"GateBiasDropped",
     [](program::Program& p) {
       change_each<program::GatedUp>(p, [](auto& s) { s.gate_bias.reset(); });
     },
     "llama_biases"},
    {"UpBiasDropped",
     [](program::Program& p) {
       change_each<program::GatedUp>(p, [](auto& s) { s.up_bias.reset(); });
     },
     "llama_biases"},
    {"BiasOfWhatIsAddedDropped",
     [](program::Program& p) {
       change_each<program::ProjectAdd>(p, [](auto& s) { s.bias.reset(); });
     },
     "llama_biases"},
};

class StepMutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(StepMutants, AreCaught) {
  const auto tiny = GetParam().fixture.empty() ? make_tiny(tiny_options("qwen2", TensorType::kQ8_0))
                                               : open_fixture(GetParam().fixture);
  program::Program mutant = tiny->model.program;
  GetParam().plant(mutant);
  EXPECT_GT(worst_step(*tiny, mutant).ratio(), 1.0);
}

INSTANTIATE_TEST_SUITE_P(, StepMutants, ::testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace godwit
