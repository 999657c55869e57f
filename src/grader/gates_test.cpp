#include "grader/gates.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "grader/mutant.h"
#include "grader/relative_error.h"
#include "grader/report.h"

namespace godwit::grader {
namespace {

// A run in which everything is right.
Measurements good_run() {
  Measurements m;
  m.model = "llama-1b";
  m.subject = "a kernel";
  m.n_positions = 32768;
  m.n_steps = 2;
  for (const uint64_t seed : {11u, 20u}) {
    SeedErrors errors;
    errors.seed = seed;
    errors.t_r = {0.026, 0.028};
    errors.t_d = {1e-5};
    errors.k_r = {0.027, 0.029};
    errors.k_d = {2e-5};
    m.seeds.push_back(errors);
  }
  for (const MutantRow& row : kMutants) {
    m.mutants.push_back({.name = std::string(row.name), .m_r = {0.4, 0.3}, .caught_by = {}});
  }
  m.depths = {{.n_layers = 1, .error = 1e-6, .failure = {}},
              {.n_layers = 2, .error = 2e-6, .failure = {}}};
  m.buffers = {{"blk.0.qkv", "q", 1e-6}, {"output", "logits", 2e-5}};
  for (const std::string_view name : kKernelTests) {
    m.tests.push_back({.name = std::string(name), .passed = true, .worst = 0.2, .detail = {}});
  }
  return m;
}

const Gate& failed_gate(const Verdict& verdict) {
  return *std::ranges::find(verdict.gates, false, &Gate::passed);
}

// Each planted failure must fail, by the gate that is meant to see it.
void expect_fails(const Measurements& m, std::string_view gate) {
  const Verdict verdict = judge(m);
  ASSERT_FALSE(verdict.passed()) << gate;
  EXPECT_EQ(failed_gate(verdict).name, gate);
  EXPECT_FALSE(nlohmann::json::parse(report_json(m, verdict))["passed"]);
  EXPECT_NE(report_text(m, verdict).find("FAILED"), std::string::npos);
}

TEST(Gates, DeriveToleranceFromLargestDifferenceOfRightImplementations) {
  const Verdict verdict = judge(good_run());
  EXPECT_TRUE(verdict.passed()) << report_text(good_run(), verdict);
  EXPECT_DOUBLE_EQ(verdict.e, 0.028);
  EXPECT_DOUBLE_EQ(verdict.tol, 2.04 * 0.028);
  EXPECT_EQ(verdict.n_mutants, 8u);
  EXPECT_EQ(verdict.n_mutants_caught, 8u);
}

TEST(Gates, FailOnOneStepBeyondTolerance) {
  Measurements m = good_run();
  m.seeds[1].k_r[1] = 2.05 * 0.028;
  expect_fails(m, "kernel against R");
}

TEST(Gates, FailOnNanAnywhere) {
  Measurements m = good_run();
  m.seeds[1].k_r[0] = std::nan("");
  expect_fails(m, "kernel against R");
  m = good_run();
  m.seeds[0].t_r[0] = std::nan("");
  expect_fails(m, "E, R against T");
  m = good_run();
  m.buffers[0].error = std::nan("");
  expect_fails(m, "kernel against D, step by step");
}

TEST(Gates, FailOnDoublePrecision) {
  Measurements m = good_run();
  m.seeds[0].k_d[0] = 1.1e-3;
  expect_fails(m, "kernel against D, logits");
  m = good_run();
  m.seeds[0].t_d[0] = 1.1e-3;
  expect_fails(m, "T against D");
}

TEST(Gates, NameFirstStepThatDiffers) {
  Measurements m = good_run();
  m.buffers = {
      {"blk.0.qkv", "q", 1e-6}, {"blk.0.attend", "attended", 2e-3}, {"output", "logits", 0.5}};
  expect_fails(m, "kernel against D, step by step");
  EXPECT_NE(failed_gate(judge(m)).detail.find("first: blk.0.attend"), std::string::npos);
}

TEST(Gates, NameFirstDepthThatDiffers) {
  Measurements m = good_run();
  m.depths = {{.n_layers = 1, .error = 1e-6, .failure = {}},
              {.n_layers = 2, .error = 2e-3, .failure = {}},
              {.n_layers = 4, .error = 0.5, .failure = {}}};
  expect_fails(m, "kernel against D, depth by depth");
  EXPECT_EQ(failed_gate(judge(m)).detail, "2 layers");
  m.depths = {{.n_layers = 1, .error = 0.0, .failure = "refused"}};
  expect_fails(m, "kernel against D, depth by depth");
  m.depths = {{.n_layers = 1, .error = std::nan(""), .failure = {}}};
  expect_fails(m, "kernel against D, depth by depth");
}

TEST(Gates, LetKernelOfWholeTokensHaveNoBuffers) {
  Measurements m = good_run();
  m.buffers.clear();
  EXPECT_TRUE(judge(m).passed());
}

TEST(Gates, FailOnReferenceThatIsNotItself) {
  Measurements m = good_run();
  m.seeds[1].r_r = 0.01;
  expect_fails(m, "Z, R against itself");
}

TEST(Gates, FailOnToleranceThatWouldLetMistakesThrough) {
  Measurements m = good_run();
  m.seeds[0].t_r[0] = 0.06;
  expect_fails(m, "E, R against T");
}

TEST(Gates, FailOnMutantInsideToleranceUnlessTestCaughtIt) {
  Measurements m = good_run();
  m.mutants[5].m_r = {0.4, 0.05};  // one seed inside is enough
  expect_fails(m, "mutant drop_split is caught");
  EXPECT_EQ(judge(m).n_mutants_caught, 7u);
  m.mutants[5].caught_by = "counting";
  EXPECT_TRUE(judge(m).passed());
}

TEST(Gates, FailOnWhatWasNotRun) {
  Measurements m = good_run();
  m.mutants.erase(m.mutants.begin());
  expect_fails(m, "mutant skip_layer is caught");
  m = good_run();
  m.seeds.clear();
  EXPECT_FALSE(judge(m).passed());
  m = good_run();
  m.seeds[0].k_r.pop_back();
  expect_fails(m, "every seed and step was run");
  m = good_run();
  m.seeds[0].t_d.clear();
  expect_fails(m, "T against D");
  m = good_run();
  m.seeds[0].k_d.clear();
  expect_fails(m, "kernel against D, logits");
  m = good_run();
  m.depths.clear();
  expect_fails(m, "kernel against D, depth by depth");
  m = good_run();
  m.tests.clear();
  expect_fails(m, "test KV rows");
  m = good_run();
  m.tests.pop_back();
  expect_fails(m, "test needle");
  m = good_run();
  m.mutants[2].m_r.pop_back();
  expect_fails(m, "mutant no_silu is caught");
  m = good_run();
  m.mutants[0].m_r = {0.4, std::nan("")};
  expect_fails(m, "mutant skip_layer is caught");
}

TEST(Gates, FailOnNamedTest) {
  Measurements m = good_run();
  m.tests.back() = {.name = "needle", .passed = false, .worst = 3.0, .detail = "at 5"};
  expect_fails(m, "test needle");
}

TEST(Gates, JudgeReferencesAloneWithoutKernel) {
  Measurements m = good_run();
  m.subject.clear();
  m.tests.clear();
  m.buffers.clear();
  m.depths.clear();
  for (SeedErrors& seed : m.seeds) seed.k_r = seed.k_d = {};
  EXPECT_TRUE(judge(m).passed());
}

TEST(RelativeError, IsInfiniteWhereItHasNoMeaning) {
  const std::vector<float> one{1.0f, 2.0f};
  const std::vector<float> nan{1.0f, std::nanf("")};
  const std::vector<float> zero{0.0f, 0.0f};
  const std::vector<float> longer{1.0f, 2.0f, 3.0f};
  const auto error = [](const std::vector<float>& a, const std::vector<float>& b) {
    return relative_error<float, float>(a, b);
  };
  EXPECT_EQ(error(one, one), 0.0);
  EXPECT_EQ(error(zero, zero), 0.0);
  EXPECT_DOUBLE_EQ(error(zero, one), 1.0);
  for (const double e : {error(nan, one), error(one, nan), error(one, zero), error(one, longer)}) {
    EXPECT_TRUE(std::isinf(e));
  }
}

}  // namespace
}  // namespace godwit::grader
