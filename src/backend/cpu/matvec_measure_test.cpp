#include "backend/cpu/matvec_measure.h"

#include <gtest/gtest.h>

#include "base/median.h"

namespace godwit::cpu {
namespace {

const MatVecKernel& q8_0() { return *find_matvec_kernel(TensorType::kQ8_0, Isa::kGeneric); }

TEST(Median, LiesBetweenTwoSamplesInProportion) {
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(median_of({3}), 3);
  EXPECT_EQ(median_of({4, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1}), 2.5);
  EXPECT_EQ(quantile_of({1, 2, 3, 4, 5}, 0), 1);
  EXPECT_EQ(quantile_of({1, 2, 3, 4, 5}, 1), 5);
  EXPECT_EQ(quantile_of({1, 2, 3}, 0.25), 1.5);
}

// Rows that are no whole tile, more threads than some tiles: the copies lie where the kernel looks,
// or the check of the results would end the program.
TEST(MeasureMatVec, TellsBytesCopiesAndSpeed) {
  const MatVecKernel& kernel = *find_matvec_kernel(TensorType::kQ4_K, detected_isa());
  for (const size_t n_planes : {size_t{1}, size_t{2}}) {
    const auto speed = measure_matvec({.kernel = &kernel,
                                       .rows = 1000,
                                       .cols = 4096,
                                       .n_tokens = 3,
                                       .n_planes = n_planes,
                                       .n_threads = 3,
                                       .n_rounds = 2});
    ASSERT_TRUE(speed) << speed.error().message;
    EXPECT_EQ(speed->bytes, 1008 * find_packing(TensorType::kQ4_K)->packed_row_bytes(4096));
    EXPECT_GE(speed->n_copies * speed->bytes, matvec_copies_bytes());
    EXPECT_DOUBLE_EQ(speed->gbps, static_cast<double>(speed->bytes) / speed->us * 1e-3);
    EXPECT_DOUBLE_EQ(speed->gmacs, 1000.0 * 4096 * 3 / speed->us * 1e-3);
    EXPECT_GT(speed->read_gbps, 0);
    EXPECT_GT(speed->share, 0);
  }
}

TEST(MeasureMatVec, OutOfTheCacheEachThreadHasRowsOfItsOwn) {
  const auto speed = measure_cached_matvec(
      {.kernel = &q8_0(), .rows = 1, .cols = 256, .n_planes = 2, .n_threads = 2, .n_rounds = 1});
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_EQ(speed->bytes, 2 * 64 * find_packing(TensorType::kQ8_0)->packed_row_bytes(256));
  EXPECT_DOUBLE_EQ(speed->gmacs, 2.0 * 64 * 256 / speed->us * 1e-3);
}

TEST(MeasureMatVec, RefusesWhatNoKernelTakes) {
  const MatVecKernel& f32 = *find_matvec_kernel(TensorType::kF32, Isa::kGeneric);
  EXPECT_FALSE(measure_matvec({.kernel = &q8_0(), .rows = 64, .cols = 100}));
  EXPECT_FALSE(measure_matvec({.kernel = &q8_0(), .rows = 0, .cols = 256}));
  EXPECT_FALSE(measure_matvec({.kernel = &q8_0(), .rows = 64, .cols = 256, .n_tokens = 0}));
  EXPECT_FALSE(
      measure_matvec({.kernel = &f32, .rows = 64, .cols = 256, .n_tokens = 1, .n_planes = 2}));
}

TEST(MeasureMatVecDeathTest, AWrongKernelIsNotTimed) {
  MatVecKernel wrong = q8_0();
  wrong.run = [](const MatVecArgs& args) {
    const MatVecArgs shifted = [&] {
      MatVecArgs a = args;
      a.weights += find_packing(TensorType::kQ8_0)->packed_row_bytes(args.cols);
      return a;
    }();
    if (args.row_end + 16 < args.rows) q8_0().run(shifted);
  };
  EXPECT_DEATH((void)measure_matvec({.kernel = &wrong, .rows = 2048, .cols = 256}),
               "being timed is wrong");
}

}  // namespace
}  // namespace godwit::cpu
