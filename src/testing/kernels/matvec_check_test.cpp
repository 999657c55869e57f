// The check of mat-vec kernels finds each mistake that is planted, by the property that is there
// to find it, and nothing wrong with the kernels themselves.
#include "testing/kernels/matvec_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace godwit::testing {
namespace {

using cpu::MatVecArgs;
using cpu::MatVecKernel;

constexpr TensorType kType = TensorType::kQ8_0;

void run_right(const MatVecArgs& args) { cpu::find_matvec_kernel(kType, Isa::kGeneric)->run(args); }

// As if the last block of columns were not there.
void skip_last_block(const MatVecArgs& args) {
  for (size_t t = 0; t < args.n_tokens; ++t) {
    MatVecArgs one = args;
    one.n_tokens = 1;
    one.x.q += t * args.x.q_stride;
    one.x.scales += t * args.x.scale_stride;
    one.x.sums += t * args.x.sum_stride;
    one.y += t * args.y_stride;
    std::vector<float> scales(one.x.scales, one.x.scales + args.cols / 32);
    scales.back() = 0.0f;
    one.x.scales = scales.data();
    run_right(one);
  }
}

void lose_last_row(const MatVecArgs& args) {
  run_right(args);
  if (args.rows % cpu::kTileRows == 0) return;
  for (size_t t = 0; t < args.n_tokens; ++t) args.y[t * args.y_stride + args.rows - 1] = 0.0f;
}

void be_off_by_a_little(const MatVecArgs& args) {
  run_right(args);
  for (size_t t = 0; t < args.n_tokens; ++t) {
    for (size_t r = args.row_begin; r < args.row_end; ++r) args.y[t * args.y_stride + r] *= 1.0001f;
  }
}

void be_off_by_one_bit(const MatVecArgs& args) {
  run_right(args);
  float& y = args.y[args.row_begin];
  y = std::nextafter(y, std::numeric_limits<float>::infinity());
}

void give_no_number(const MatVecArgs& args) {
  run_right(args);
  args.y[args.row_begin] = std::numeric_limits<float>::quiet_NaN();
}

void depend_on_the_split(const MatVecArgs& args) {
  run_right(args);
  // What a thread gets of 70 rows when there are many.
  if (args.rows == 16) args.y[3] = std::nextafter(args.y[3], 1e30f);
}

void depend_on_the_group(const MatVecArgs& args) {
  run_right(args);
  if (args.n_tokens == 5) args.y[0] = std::nextafter(args.y[0], 1e30f);
}

void mix_up_tokens(const MatVecArgs& args) {
  run_right(args);
  if (args.n_tokens < 9) return;
  for (size_t r = args.row_begin; r < args.row_end; ++r) {
    args.y[8 * args.y_stride + r] = args.y[7 * args.y_stride + r];
  }
}

std::vector<Finding> findings_of(void (*run)(const MatVecArgs&)) {
  const ThreadCounts threads;
  const MatVecKernel kernel = {
      "planted", kType, Isa::kGeneric, cpu::ActivationKind::kQ8Block32, cpu::Exactness::kExact,
      run};
  std::vector<Finding> findings;
  check_matvec({.kernels = {&kernel, 1}}, threads,
               [&](const Finding& f) { findings.push_back(f); });
  return findings;
}

bool property_holds(const std::vector<Finding>& findings, std::string_view property) {
  const auto found = std::ranges::find(findings, property, &Finding::property);
  EXPECT_NE(found, findings.end()) << property;
  return found != findings.end() && found->holds();
}

TEST(MatVecCheck, FindsNothingWrongWithTheKernels) {
  const ThreadCounts threads;
  size_t n = 0;
  check_matvec({.kernels = cpu::matvec_kernels(), .ceiling = detected_isa()}, threads,
               [&](const Finding& f) {
                 ++n;
                 EXPECT_TRUE(f.holds()) << f.subject << ' ' << f.property << ": " << f.error
                                        << ", bound " << f.bound << " at " << f.at;
                 EXPECT_GT(f.n_cases, 0u) << f.subject << ' ' << f.property;
               });
  EXPECT_GT(n, 100u);
}

TEST(MatVecCheck, FindsWhatIsWrongInValue) {
  for (const auto run : {skip_last_block, lose_last_row, be_off_by_a_little, mix_up_tokens}) {
    const std::vector<Finding> findings = findings_of(run);
    EXPECT_FALSE(property_holds(findings, "double"));
    EXPECT_FALSE(property_holds(findings, "bits"));
  }
  EXPECT_FALSE(property_holds(findings_of(give_no_number), "double"));
}

TEST(MatVecCheck, FindsOneBit) {
  const std::vector<Finding> findings = findings_of(be_off_by_one_bit);
  EXPECT_TRUE(property_holds(findings, "double"));
  EXPECT_FALSE(property_holds(findings, "bits"));
}

TEST(MatVecCheck, FindsWhatDependsOnTheSplitOfRows) {
  const std::vector<Finding> findings = findings_of(depend_on_the_split);
  EXPECT_TRUE(property_holds(findings, "double"));
  EXPECT_TRUE(property_holds(findings, "bits"));
  EXPECT_FALSE(property_holds(findings, "threads"));
}

TEST(MatVecCheck, FindsWhatDependsOnTheNumberOfTokens) {
  const std::vector<Finding> findings = findings_of(depend_on_the_group);
  EXPECT_TRUE(property_holds(findings, "double"));
  EXPECT_TRUE(property_holds(findings, "bits"));
  EXPECT_FALSE(property_holds(findings, "rows"));
}

// A worse rounding of activations than two planes would leave its bound: the bound is not slack.
TEST(MatVecCheck, RoundingBoundIsNearWhatIsSeen) {
  for (const Finding& f : findings_of(run_right)) {
    if (f.property != "rounding") continue;
    EXPECT_GT(f.error, 0.001 * f.bound);
    EXPECT_TRUE(f.holds());
  }
}

}  // namespace
}  // namespace godwit::testing
