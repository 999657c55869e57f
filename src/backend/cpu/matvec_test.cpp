// The table's kernels, all that this processor can run, against the decoders of quant/ in double
// and against each other bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "base/bits.h"
#include "base/random.h"
#include "quant/formats.h"
#include "testing/guarded_buffer.h"

namespace godwit::cpu {

// How GoogleTest shows a parameter.
void PrintTo(const MatVecKernel& kernel, std::ostream* out);
void PrintTo(const MatVecKernel& kernel, std::ostream* out) { *out << kernel.name; }

namespace {

struct MatVecShape {
  TensorType type;
  size_t rows;
  size_t cols;
  size_t n_tokens;
};

// Changes the file's bytes before they are packed.
using EditBlocks = std::function<void(std::span<std::byte> file)>;

// One mat-vec in guarded buffers: file rows of random or chosen blocks, packed; floats, quantised;
// and the answer in double from the decoder of quant/.
class MatVecProblem {
 public:
  MatVecProblem(const MatVecShape& shape, uint64_t seed, const EditBlocks& edit)
      : shape_(shape),
        kind_(find_matvec_kernel(shape.type, Isa::kGeneric)->activation),
        file_(shape.rows * row_bytes(shape.type, shape.cols)),
        packed_(round_up(shape.rows, kTileRows) *
                find_packing(shape.type)->packed_row_bytes(shape.cols)),
        x_(shape.n_tokens * shape.cols * sizeof(float)),
        scratch_(activation_bytes(kind_, shape.n_tokens, shape.cols)) {
    RandomStream random(seed);
    const TensorGeometry& geometry = tensor_geometry(shape.type);
    const std::span<std::byte> file = file_.bytes();
    for (size_t at = 0; at < file.size(); at += geometry.block_bytes) {
      quant::find_format(shape.type)->random_block(random, 1.0f, &file[at]);
    }
    if (edit) edit(file);
    find_packing(shape.type)->pack(file.data(), shape.rows, shape.cols, packed_.bytes().data());
    for (float& value : x_.as<float>()) value = static_cast<float>(random.bell());
    quantize(Isa::kGeneric);
  }

  [[nodiscard]] std::span<float> x() const { return x_.as<float>(); }
  [[nodiscard]] const Activations& activations() const { return activations_; }
  [[nodiscard]] std::span<const std::byte> scratch() const { return scratch_.bytes(); }

  // Fills the activations anew from x().
  void quantize(Isa isa) {
    const float* x = x_.as<float>().data();
    activations_ =
        layout_activations(kind_, x, shape_.cols, shape_.n_tokens, shape_.cols, scratch_.bytes());
    quantize_activations(kind_, activations_, x, shape_.cols, shape_.cols, {0, shape_.n_tokens},
                         isa);
  }

  // y [n_tokens, rows] of the first n_tokens, in pieces of `step` rows.
  [[nodiscard]] std::vector<float> run(const MatVecKernel& kernel, size_t n_tokens,
                                       size_t step) const {
    const testing::GuardedBuffer y(n_tokens * shape_.rows * sizeof(float));
    for (size_t row = 0; row < shape_.rows; row += step) {
      kernel.run({.weights = packed_.bytes().data(),
                  .rows = shape_.rows,
                  .cols = shape_.cols,
                  .row_begin = row,
                  .row_end = std::min(shape_.rows, row + step),
                  .x = activations_,
                  .n_tokens = n_tokens,
                  .y = y.as<float>().data(),
                  .y_stride = shape_.rows});
    }
    return {y.as<float>().begin(), y.as<float>().end()};
  }

  struct Answer {
    double y = 0;
    double magnitude = 0;  // sum of |w * x|
  };

  // The answers over the quantised activations, [n_tokens, rows].
  [[nodiscard]] std::vector<Answer> answers() const {
    std::vector<Answer> all(shape_.n_tokens * shape_.rows);
    std::vector<float> weights(shape_.cols);
    const size_t bytes = row_bytes(shape_.type, shape_.cols);
    for (size_t r = 0; r < shape_.rows; ++r) {
      quant::decode_row(shape_.type, file_.bytes().subspan(r * bytes, bytes), weights);
      for (size_t t = 0; t < shape_.n_tokens; ++t) {
        Answer& answer = all[t * shape_.rows + r];
        for (size_t c = 0; c < shape_.cols; ++c) {
          const double product = static_cast<double>(weights[c]) * activation(t, c);
          answer.y += product;
          answer.magnitude += std::fabs(product);
        }
      }
    }
    return all;
  }

 private:
  [[nodiscard]] double activation(size_t t, size_t c) const {
    const Activations& a = activations_;
    if (kind_ == ActivationKind::kF32) return static_cast<double>(a.f32[t * a.f32_stride + c]);
    const size_t block = activation_block(kind_);
    return static_cast<double>(a.scales[t * a.scale_stride + c / block]) * a.q[t * a.q_stride + c];
  }

  MatVecShape shape_;
  ActivationKind kind_;
  testing::GuardedBuffer file_;
  testing::GuardedBuffer packed_;
  testing::GuardedBuffer x_;
  testing::GuardedBuffer scratch_;
  Activations activations_;
};

constexpr size_t kRows[] = {1, 15, 16, 17, 33};
constexpr size_t kCols[] = {32, 64, 256, 512, 2048, 4864};
constexpr size_t kFloatCols[] = {1, 2, 3, 5, 31, 64, 129, 2048};
constexpr size_t kMaxTokens = 17;
constexpr size_t kTokens[] = {1, 2, 3, 4, 5, 7, 8, 9, 16};

std::span<const size_t> columns_of(const MatVecKernel& kernel) {
  return kernel.activation == ActivationKind::kF32 ? std::span<const size_t>(kFloatCols)
                                                   : std::span<const size_t>(kCols);
}

// One test per row of the table.
class MatVec : public ::testing::TestWithParam<MatVecKernel> {
 protected:
  void SetUp() override {
    if (GetParam().isa > detected_isa()) GTEST_SKIP() << "this processor cannot run it";
  }
  [[nodiscard]] static const MatVecKernel& reference() {
    return *find_matvec_kernel(GetParam().type, Isa::kGeneric);
  }
};

std::string kernel_name(const ::testing::TestParamInfo<MatVecKernel>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, MatVec,
                         ::testing::ValuesIn(matvec_kernels().begin(), matvec_kernels().end()),
                         kernel_name);

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, size_t n,
                      const std::string& what) {
  ASSERT_GE(a.size(), n);
  ASSERT_GE(b.size(), n);
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << what << ": element " << i << " of " << n << ": " << a[i] << " and " << b[i];
  }
}

void expect_near_double(const MatVecProblem& problem, const std::vector<float>& y,
                        const std::string& what) {
  const std::vector<MatVecProblem::Answer> answers = problem.answers();
  ASSERT_EQ(y.size(), answers.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const MatVecProblem::Answer& answer = answers[i];
    // The 2^-149 is for answers among the subnormals.
    ASSERT_LE(std::fabs(static_cast<double>(y[i]) - answer.y), 2e-5 * answer.magnitude + 0x1p-140)
        << what << ": element " << i << ": " << y[i] << ", expected " << answer.y;
  }
}

TEST_P(MatVec, MatchesDoubleAndReferenceOverShapes) {
  const MatVecKernel& kernel = GetParam();
  for (const size_t cols : columns_of(kernel)) {
    if (cols % tensor_geometry(kernel.type).block_weights != 0) continue;
    for (const size_t rows : kRows) {
      const MatVecProblem problem({kernel.type, rows, cols, kMaxTokens}, rows * 10007 + cols, {});
      const std::string what =
          std::string(kernel.name) + " " + std::to_string(rows) + "x" + std::to_string(cols);
      const std::vector<float> y = problem.run(kernel, kMaxTokens, 4096);
      expect_near_double(problem, y, what);
      expect_same_bits(y, problem.run(reference(), kMaxTokens, 4096), y.size(), what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MatVec, GivesTheSameBitsForAnySplitOfRowsAndTokens) {
  const MatVecKernel& kernel = GetParam();
  for (const size_t cols : {size_t{256}, size_t{1536}}) {
    const size_t rows = 70;
    const MatVecProblem problem({kernel.type, rows, cols, kMaxTokens}, cols, {});
    const std::vector<float> y = problem.run(kernel, kMaxTokens, 4096);
    for (const size_t step : {size_t{16}, size_t{32}, size_t{48}}) {
      expect_same_bits(y, problem.run(kernel, kMaxTokens, step), y.size(), "rows split");
    }
    for (const size_t n_tokens : kTokens) {
      expect_same_bits(y, problem.run(kernel, n_tokens, 4096), n_tokens * rows,
                       std::to_string(n_tokens) + " tokens");
    }
    if (HasFatalFailure()) return;
  }
}

// Some kernels rearrange the activations in a place of limited size.
TEST_P(MatVec, IsExactForRowsOfAnyLength) {
  const MatVecKernel& kernel = GetParam();
  if (kernel.activation != ActivationKind::kQ8Block256) return;
  for (const size_t cols : {size_t{1} << 14, size_t{1} << 16, (size_t{1} << 17) + 256}) {
    const MatVecProblem problem({kernel.type, 3, cols, 10}, cols, {});
    expect_same_bits(problem.run(kernel, 10, 4096), problem.run(reference(), 10, 4096), 30,
                     std::string(kernel.name) + " of " + std::to_string(cols) + " columns");
    if (HasFatalFailure()) return;
  }
}

// Checks one problem whose bytes were edited, for one token and for several.
void check_edited(const MatVecKernel& kernel, const MatVecKernel& reference, size_t cols,
                  const EditBlocks& edit, const std::string& what) {
  MatVecProblem problem({kernel.type, 17, cols, 9}, 5, edit);
  // The largest activations there are: every q is 127 or -127.
  for (size_t i = 0; i < problem.x().size(); ++i) problem.x()[i] = i % 7 < 5 ? 1.0f : -1.0f;
  for (size_t i = 0; i < cols; ++i) problem.x()[i] = -3.0f;
  problem.quantize(Isa::kGeneric);
  const std::vector<float> y = problem.run(kernel, 9, 4096);
  expect_near_double(problem, y, what);
  expect_same_bits(y, problem.run(reference, 9, 4096), y.size(), what);
  expect_same_bits(y, problem.run(kernel, 1, 4096), 17, what + ", one token");
}

// Where the parts of a block lie in the file. What is between is a code or a small scale.
struct BlockParts {
  TensorType type;
  size_t codes_begin;
  size_t codes_end;
  std::vector<size_t> halves;       // binary16 scales
  std::vector<size_t> float_bytes;  // scales that are floats of eight bits
};

const BlockParts& block_parts(TensorType type) {
  using enum TensorType;
  static const std::vector<BlockParts> table = {
      {kQ4_0, 2, 18, {0}, {}},    {kQ4_1, 4, 20, {0, 2}, {}},        {kQ5_0, 2, 22, {0}, {}},
      {kQ5_1, 4, 24, {0, 2}, {}}, {kQ8_0, 2, 34, {0}, {}},           {kQ2_K, 0, 80, {80, 82}, {}},
      {kQ3_K, 0, 108, {108}, {}}, {kQ4_K, 16, 144, {0, 2}, {}},      {kQ5_K, 16, 176, {0, 2}, {}},
      {kQ6_K, 0, 208, {208}, {}}, {kIQ1_S, 2, 50, {0}, {}},          {kIQ1_M, 0, 48, {}, {}},
      {kIQ2_XXS, 2, 66, {0}, {}}, {kIQ2_XS, 2, 74, {0}, {}},         {kIQ2_S, 2, 82, {0}, {}},
      {kIQ3_XXS, 2, 98, {0}, {}}, {kIQ3_S, 2, 110, {0}, {}},         {kIQ4_NL, 2, 18, {0}, {}},
      {kIQ4_XS, 2, 136, {0}, {}}, {kTQ1_0, 0, 52, {52}, {}},         {kTQ2_0, 0, 64, {64}, {}},
      {kMXFP4, 1, 17, {}, {0}},   {kNVFP4, 4, 36, {}, {0, 1, 2, 3}}, {kQ1_0, 2, 18, {0}, {}},
      {kQ2_0, 2, 18, {0}, {}},
  };
  static const BlockParts none = {};
  const auto found = std::ranges::find(table, type, &BlockParts::type);
  return found == table.end() ? none : *found;
}

// Sets the codes of each block to one byte and leaves its scales.
EditBlocks fill_codes(TensorType type, uint8_t value) {
  return [type, value](std::span<std::byte> file) {
    const BlockParts& parts = block_parts(type);
    for (size_t at = 0; at < file.size(); at += tensor_geometry(type).block_bytes) {
      std::memset(&file[at + parts.codes_begin], value, parts.codes_end - parts.codes_begin);
    }
  };
}

TEST_P(MatVec, IsExactAtExtremeCodes) {
  const MatVecKernel& kernel = GetParam();
  if (kernel.activation == ActivationKind::kF32) return;
  ASSERT_GT(block_parts(kernel.type).codes_end, 0u) << "not in the table of block_parts()";
  for (const int value : {0x00, 0x7f, 0x80, 0x81, 0xff, 0x0f, 0xf0}) {
    check_edited(kernel, reference(), 512, fill_codes(kernel.type, static_cast<uint8_t>(value)),
                 std::string(kernel.name) + " codes " + std::to_string(value));
  }
}

// IQ1_M keeps its scale as the highest nibbles of its last four words.
void set_scale_iq1_m(std::span<std::byte> block, uint16_t half) {
  for (size_t k = 0; k < 4; ++k) {
    std::byte& high = block[48 + 2 * k + 1];
    high = (high & std::byte{0x0f}) | static_cast<std::byte>((half >> (4 * k) & 15) << 4);
  }
}

TEST_P(MatVec, IsExactAtExtremeScales) {
  const MatVecKernel& kernel = GetParam();
  // Largest, smallest subnormal, largest subnormal, zero, minus zero.
  for (const int bits : {0x7bff, 0xfbff, 0x0001, 0x83ff, 0x0000, 0x8000}) {
    // As bfloat16 the largest binary16 would be so large that the sum overflows.
    const int largest = kernel.type == TensorType::kBF16 ? 0x77ff : 0x7bff;
    const auto half = static_cast<uint16_t>(bits & (0x8000 | largest));
    const EditBlocks edit = [&](std::span<std::byte> file) {
      for (size_t at = 0; at < file.size(); at += tensor_geometry(kernel.type).block_bytes) {
        if (kernel.type == TensorType::kIQ1_M) {
          set_scale_iq1_m(file.subspan(at), half);
          continue;
        }
        for (const size_t offset : block_parts(kernel.type).halves) {
          std::memcpy(&file[at + offset], &half, 2);
        }
        if (kernel.type == TensorType::kF16 || kernel.type == TensorType::kBF16) {
          std::memcpy(&file[at], &half, 2);
        }
      }
    };
    check_edited(kernel, reference(), 512, edit,
                 std::string(kernel.name) + " scale " + std::to_string(half));
  }
}

TEST_P(MatVec, IsExactAtEveryScaleOfEightBits) {
  const MatVecKernel& kernel = GetParam();
  const std::vector<size_t>& places = block_parts(kernel.type).float_bytes;
  if (places.empty()) return;
  // A weight of MXFP4 with the largest exponents is infinite.
  const int end = kernel.type == TensorType::kMXFP4 ? 240 : 256;
  for (int first = 0; first < end; first += 16) {
    const EditBlocks edit = [&](std::span<std::byte> file) {
      size_t n = 0;
      for (size_t at = 0; at < file.size(); at += tensor_geometry(kernel.type).block_bytes) {
        for (const size_t place : places) {
          file[at + place] = static_cast<std::byte>(first + static_cast<int>(n++ % 16));
        }
      }
    };
    check_edited(kernel, reference(), 512, edit,
                 std::string(kernel.name) + " scales from " + std::to_string(first));
  }
}

TEST_P(MatVec, ShowsActivationsThatAreNotNumbers) {
  const MatVecKernel& kernel = GetParam();
  for (const float value :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    MatVecProblem problem({kernel.type, 16, 512, 2}, 1, {});
    problem.x()[300] = value;
    problem.quantize(Isa::kGeneric);
    const std::vector<float> y = problem.run(kernel, 2, 4096);
    for (size_t r = 0; r < 16; ++r) {
      EXPECT_FALSE(std::isfinite(y[r])) << kernel.name;
      EXPECT_TRUE(std::isfinite(y[16 + r])) << kernel.name;
    }
  }
}

TEST(KernelTable, HasAPackingAndAGenericKernelForEveryFormat) {
  for (const quant::Format& format : quant::formats()) {
    EXPECT_NE(find_packing(format.type), nullptr) << tensor_type_name(format.type);
    const MatVecKernel* kernel = find_matvec_kernel(format.type, Isa::kGeneric);
    ASSERT_NE(kernel, nullptr) << tensor_type_name(format.type);
    EXPECT_EQ(kernel->isa, Isa::kGeneric);
  }
}

TEST(KernelTable, ListsTheBestFirstAndUsesOneActivationKindPerType) {
  const std::span<const MatVecKernel> kernels = matvec_kernels();
  for (const MatVecKernel& kernel : kernels) {
    EXPECT_EQ(kernel.activation, find_matvec_kernel(kernel.type, Isa::kGeneric)->activation);
    for (const MatVecKernel* later = &kernel; later != kernels.data() + kernels.size(); ++later) {
      if (later->type == kernel.type) {
        EXPECT_LE(later->isa, kernel.isa) << kernel.name;
      }
    }
  }
}

TEST(KernelTable, FindsNothingForTypesItDoesNotCompute) {
  EXPECT_EQ(find_packing(TensorType::kI8), nullptr);
  EXPECT_EQ(find_matvec_kernel(TensorType::kI8, Isa::kAvx512Bf16), nullptr);
}

}  // namespace
}  // namespace godwit::cpu
