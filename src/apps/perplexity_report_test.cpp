// Statistics on values worked by hand, and the lines that scripts read.
#include "apps/perplexity_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace godwit::apps {
namespace {

TEST(PerplexityReport, EstimatesWithTheErrorOfTheMean) {
  PerplexitySum sum;
  for (const double nll : {1.0, 2.0, 3.0, 2.0}) sum.add(nll);
  EXPECT_DOUBLE_EQ(sum.mean_nll().value, 2.0);
  EXPECT_DOUBLE_EQ(sum.mean_nll().error, std::sqrt(0.5 / 3));
  EXPECT_EQ(final_text(sum), "Final estimate: PPL = 7.3891 +/- 3.01657\n");
}

TEST(PerplexityReport, OneTokenHasNoError) {
  PerplexitySum sum;
  sum.add(0.5);
  EXPECT_EQ(sum.perplexity().error, 0.0);
  EXPECT_EQ(PerplexitySum().perplexity().value, 1.0);
}

TEST(PerplexityReport, ChunksInBothForms) {
  PerplexitySum sum;
  sum.add(1.0);
  sum.add(2.0);
  const Window window{.begin = 1024, .length = 512, .first = 256};
  EXPECT_EQ(chunk_text(PplOutput::kRunning, 2, window, sum), "[3]4.4817,");
  EXPECT_EQ(chunk_text(PplOutput::kTable, 2, window, sum),
            "    1024  4.4817  1.500000  0.500000\n");
}

DivergenceSum many(size_t n) {
  DivergenceSum sum;
  for (size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i % 4);
    sum.add({.nll = 1 + x,
             .nll_base = 1,
             .kld = x,
             .p_diff = i % 2 == 0 ? 0.1 : -0.1,
             .same_top = i % 4 != 0});
  }
  return sum;
}

TEST(PerplexityReport, DivergenceFigures) {
  const DivergenceFigures f = many(100).figures();
  EXPECT_EQ(f.n_tokens, 100u);
  EXPECT_NEAR(f.kld.value, 1.5, 1e-12);
  EXPECT_NEAR(f.kld.error, std::sqrt(1.25 / 99), 1e-12);
  EXPECT_NEAR(f.log_ratio.value, 1.5, 1e-12);
  EXPECT_NEAR(f.ppl_base.value, std::exp(1.0), 1e-12);
  EXPECT_NEAR(f.p_diff.value, 0, 1e-12);
  EXPECT_NEAR(f.p_diff_rms.value, 0.1, 1e-12);
  EXPECT_NEAR(f.same_top.value, 0.75, 1e-12);
  EXPECT_NEAR(f.same_top.error, std::sqrt(0.1875 / 99), 1e-12);
}

TEST(PerplexityReport, DivergenceTextAndJsonAgree) {
  const DivergenceSum sum = many(100);
  const std::string text = divergence_text(sum);
  EXPECT_NE(text.find("Mean    KLD:   1.500000 \u00b1   0.112367\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Maximum KLD:   3.000000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Median  KLD:   1.500000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("RMS \u0394p    : 10.000"), std::string::npos) << text;
  EXPECT_NE(text.find("Same top p: 75.000"), std::string::npos) << text;
  const nlohmann::json json = divergence_json(sum);
  EXPECT_DOUBLE_EQ(json["kld"]["median"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(json["kld"]["max"].get<double>(), 3.0);
  EXPECT_NEAR(json["same_top"]["value"].get<double>(), 0.75, 1e-12);
}

TEST(PerplexityReport, FewTokensAreNoStatistics) {
  EXPECT_EQ(divergence_text(many(99)), "");
  EXPECT_TRUE(divergence_json(DivergenceSum()).is_null());
}

TEST(PerplexityReport, PercentilesLieBetweenNeighbours) {
  const std::vector<float> values = {0, 1, 2, 10};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 0);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 10);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 1.5);
  const std::vector<float> one = {3};
  EXPECT_DOUBLE_EQ(percentile(one, 0.9), 3);
}

}  // namespace
}  // namespace godwit::apps
