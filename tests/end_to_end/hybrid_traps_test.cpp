// What is easily got wrong about hybrid models and shows in no difference of logits, or only far
// from where the fixtures go. docs/QWEN3NEXT.md lists all of it.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "apps/synth_model.h"
#include "backend/registry.h"
#include "mutant_model.h"
#include "testing/temporary_folder.h"

namespace godwit {
namespace {

using testing::kPositions;
using testing::MutantModel;

class OnBackend : public ::testing::TestWithParam<std::string> {};

// softplus(900) is 900: exp(900) would be infinite, and the state forgotten.
TEST_P(OnBackend, SoftplusOfLargeStepsDoesNotOverflow) {
  const auto logits = [](float step, float decay) {
    MutantModel model("qwen3next");
    model.each<program::Recurrent>([&](program::Recurrent& s) {
      model.change_values(s.dt_bias, [&](float) { return step; });
      model.change_values(s.decay, [&](float) { return decay; });
    });
    return model.run(GetParam(), {});
  };
  const std::vector<float> large = logits(900.0f, -1e-4f);
  const std::vector<float> small = logits(600.0f, -1.5e-4f);  // the same decay, but for `a`
  double worst = 0;
  for (size_t i = 0; i < large.size(); ++i) {
    ASSERT_TRUE(std::isfinite(large[i]));
    worst =
        std::max(worst, std::abs(static_cast<double>(large[i]) - static_cast<double>(small[i])));
  }
  EXPECT_LE(worst, 0.05);
  const std::vector<float> forgotten = logits(900.0f, -1.0f);
  double apart = 0;
  for (size_t i = 0; i < large.size(); ++i) {
    apart = std::max(apart,
                     std::abs(static_cast<double>(large[i]) - static_cast<double>(forgotten[i])));
  }
  EXPECT_GT(apart, 10.0 * worst) << "a state kept and one forgotten look the same";
}

// Two experts whose logits are always equal: the one with the lower id comes first, and alone if
// only one of them is chosen.
TEST_P(OnBackend, TiesOfTheRouterGoToTheLowerId) {
  constexpr float kLow = 3.0f;
  constexpr float kHigh = 9.0f;
  MutantModel model("qwen3moe");
  model.each<program::Route>([&](program::Route& s) {
    model.permute_rows(s.weight, [&](size_t i) { return i == 9 ? size_t{3} : i; });
  });
  size_t both = 0;
  size_t alone = 0;
  model.run(GetParam(), [&](MutantModel& m, const program::Step& step) {
    const auto* s = std::get_if<program::Route>(&step.operation);
    if (s == nullptr) return;
    const std::vector<float> routing = m.read(s->out.buffer);
    for (size_t t = 0; t < kPositions; ++t) {
      const auto ids = std::span(routing).subspan(t * s->out.width(), s->out.n_used);
      const auto low = std::ranges::find(ids, kLow);
      const auto high = std::ranges::find(ids, kHigh);
      if (high != ids.end()) {
        ASSERT_NE(low, ids.end()) << step.label << " row " << t;
        EXPECT_EQ(high - low, 1) << step.label << " row " << t;
        ++both;
      } else if (low != ids.end()) {
        ++alone;
      }
    }
  });
  EXPECT_GT(both, 0u);
  EXPECT_GT(alone, 0u) << "no row had room for one of them only";
}

// A state cannot be rolled back by running an earlier position again.
TEST_P(OnBackend, RecurrentStatesDoNotJump) {
  const Result<gguf::File> file = gguf::File::open(testing::transformers_fixture("qwen35.gguf"));
  ASSERT_TRUE(file);
  const Result<model::Model> model = model::build_model(*file);
  ASSERT_TRUE(model);
  auto backend = backend::make_backend(GetParam(), {.n_threads = 1});
  ASSERT_TRUE(backend);
  ASSERT_TRUE((*backend)->load(model->program, model->weights, {}));
  const auto context = (*backend)->make_context({.n_positions = 16, .max_rows = 4});
  ASSERT_TRUE(context);
  const auto run = [&](int32_t first) {
    std::vector<program::Row> rows;
    for (int32_t i = first; i < first + 4; ++i) rows.push_back({.token = {i}, .position = {i}});
    EXPECT_TRUE((*backend)->run(*context, rows, {0, model->program.main.size()}));
  };
  run(0);
  EXPECT_DEATH(run(2), "cannot jump");
  EXPECT_DEATH(run(5), "cannot jump");
  run(4);
}

INSTANTIATE_TEST_SUITE_P(HybridTraps, OnBackend, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

// Names that begin alike, and a norm that other architectures call otherwise.
TEST(HybridTraps, WeightsAreTheOnesOfTheirName) {
  for (const char* fixture : {"qwen3next", "qwen35moe"}) {
    MutantModel model(fixture);
    size_t n = 0;
    const auto name = [&](const program::WeightRef& ref) {
      return model.program().weights[ref.id].name;
    };
    model.each<program::Route>([&](program::Route& s) {
      const std::string prefix = fmt::format("blk.{}.", n++);
      EXPECT_EQ(name(s.weight), prefix + "ffn_gate_inp.weight");
      EXPECT_EQ(name(*s.shared), prefix + "ffn_gate_inp_shexp.weight");
      EXPECT_EQ(name(s.norm.weight), prefix + "post_attention_norm.weight");
    });
    EXPECT_EQ(n, model.program().n_layers);
  }
}

TEST(HybridTraps, TheFileNamesItsRecurrentLayers) {
  const auto kinds = [](const char* fixture) {
    MutantModel model(fixture);
    std::string found;
    for (const program::Step& step : model.program().main) {
      if (std::holds_alternative<program::Recurrent>(step.operation)) found += 'r';
      if (std::holds_alternative<program::Attend>(step.operation)) found += 'a';
    }
    return found;
  };
  EXPECT_EQ(kinds("qwen35"), "rarra");  // no interval gives this
  EXPECT_EQ(kinds("qwen35moe"), "rrarra");
  EXPECT_EQ(kinds("qwen3next_ssm_in"), "rrrarrra");  // no list
}

// Logits at the last position of a context of 2^18, where an angle in f32 is off by 5.6e-3 radians:
// the two backends agree far better than they would.
TEST(HybridTraps, AnglesFarOutAreExact) {
  constexpr int32_t kFar = (1 << 18) - 1;
  apps::SynthOptions options;
  options.shape = *apps::find_shape("tiny");
  options.shape.n_layers = 1;
  options.shape.n_heads = 4;
  options.shape.n_kv_heads = 1;
  options.shape.head_dim = 16;
  options.shape.context = kFar + 1;
  options.matrix_type = TensorType::kF32;
  const testing::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "far.gguf";
  ASSERT_TRUE(apps::write_synth_model(*apps::plan_synth_model(options), path, {}));
  const Result<gguf::File> file = gguf::File::open(path);
  ASSERT_TRUE(file);
  Result<model::Model> model = model::build_model(*file);
  ASSERT_TRUE(model);
  for (program::Step& step : model->program.main) {
    auto* attend = std::get_if<program::Attend>(&step.operation);
    if (attend != nullptr) attend->window = 8;
  }
  const auto logits = [&](const char* name, const program::Program& program) {
    auto backend = backend::make_backend(name, {.n_threads = 2});
    EXPECT_TRUE((*backend)->load(program, model->weights, {}));
    const auto context = (*backend)->make_context({.n_positions = kFar + 1,
                                                   .k_type = TensorType::kF32,
                                                   .v_type = TensorType::kF32,
                                                   .max_rows = 8});
    std::vector<program::Row> rows;
    for (int32_t i = 0; i < 8; ++i) rows.push_back({.token = {i}, .position = {kFar - 7 + i}});
    rows.back().wants_logits = true;
    EXPECT_TRUE((*backend)->run(*context, rows, {0, program.main.size()}));
    const std::span<const float> found = (*backend)->logits(*context);
    return std::vector<float>(found.begin(), found.end());
  };
  const std::vector<float> expected = logits("reference", model->program);
  EXPECT_LE(testing::relative_error(logits("cpu", model->program), expected), 2e-5);
  // As far off as angles in f32 would be.
  program::Program off = model->program;
  for (double& frequency : off.ropes[0].frequencies) frequency *= 1.0 + 5.6e-3 / 7;
  EXPECT_GT(testing::relative_error(logits("reference", off), expected), 1e-4);
}

}  // namespace
}  // namespace godwit
