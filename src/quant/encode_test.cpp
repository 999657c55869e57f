// Every encoder on every kind of weights: how far what it wrote lies from what it was given, that
// nothing gets worse when that is encoded again, and that odd blocks come out right. Comparison
// with other quantisers: tests/conformance/quantize.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/random.h"
#include "quant/encode_kernels.h"
#include "quant/encode_select.h"
#include "quant/encode_table.h"
#include "quant/formats.h"

namespace godwit::quant {
namespace {

constexpr size_t kBlock = 256;  // a multiple of every type's block

std::vector<std::byte> encode(const Encoder& encoder, std::span<const float> weights) {
  std::vector<std::byte> bytes(row_bytes(encoder.type, weights.size()));
  encoder.encode(weights, bytes);
  return bytes;
}

std::vector<float> decode(TensorType type, std::span<const std::byte> bytes) {
  const TensorGeometry& geometry = tensor_geometry(type);
  std::vector<float> weights(bytes.size() / geometry.block_bytes * geometry.block_weights);
  decode_row(type, bytes, weights);
  return weights;
}

std::vector<float> round_trip(const Encoder& encoder, std::span<const float> weights) {
  return decode(encoder.type, encode(encoder, weights));
}

double rms(std::span<const float> a) {
  double sum = 0;
  for (const float x : a) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The RMS of the differences over the RMS of `exact`.
double relative_error(std::span<const float> exact, std::span<const float> found) {
  std::vector<float> differences(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) differences[i] = found[i] - exact[i];
  return rms(differences) / rms(exact);
}

std::vector<float> bells(size_t n, uint64_t seed, double deviation) {
  RandomStream random(seed);
  std::vector<float> weights(n);
  for (float& weight : weights) weight = static_cast<float>(deviation * random.bell());
  return weights;
}

class Encoders : public ::testing::TestWithParam<TensorType> {
 protected:
  [[nodiscard]] static const Encoder& encoder() { return *find_encoder(GetParam()); }
  [[nodiscard]] static bool is_float() { return tensor_geometry(GetParam()).block_weights == 1; }
};

std::vector<TensorType> all_types() {
  std::vector<TensorType> types;
  for (const Encoder& encoder : encoders()) types.push_back(encoder.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, Encoders, ::testing::ValuesIn(all_types()), [](const auto& tested) {
  return std::string(tensor_type_name(tested.param));
});

// Relative RMS errors on bell-shaped weights, a few percent above what each reaches.
const std::map<TensorType, double>& error_bounds() {
  static const std::map<TensorType, double> kBounds = {
      {TensorType::kF32, 0},         {TensorType::kF16, 3e-4},      {TensorType::kBF16, 2e-3},
      {TensorType::kQ8_0, 0.0055},   {TensorType::kQ6_K, 0.0185},   {TensorType::kQ5_1, 0.035},
      {TensorType::kQ5_K, 0.036},    {TensorType::kQ5_0, 0.042},    {TensorType::kQ4_1, 0.072},
      {TensorType::kQ4_K, 0.073},    {TensorType::kQ4_0, 0.084},    {TensorType::kIQ4_NL, 0.080},
      {TensorType::kIQ4_XS, 0.083},  {TensorType::kQ3_K, 0.165},    {TensorType::kIQ3_S, 0.160},
      {TensorType::kIQ3_XXS, 0.205}, {TensorType::kQ2_K, 0.305},    {TensorType::kIQ2_S, 0.270},
      {TensorType::kIQ2_XS, 0.295},  {TensorType::kIQ2_XXS, 0.335},
  };
  return kBounds;
}

TEST_P(Encoders, StayWithinTheErrorOfTheirType) {
  const std::vector<float> weights = bells(64 * kBlock, 1, 0.02);
  EXPECT_LE(relative_error(weights, round_trip(encoder(), weights)), error_bounds().at(GetParam()));
}

// What a block can hold is found again, or nearly: the second time loses far less.
TEST_P(Encoders, LoseLittleWhenTheyEncodeWhatTheyWrote) {
  const std::vector<float> weights = bells(16 * kBlock, 2, 0.02);
  const std::vector<float> once = round_trip(encoder(), weights);
  const std::vector<float> twice = round_trip(encoder(), once);
  EXPECT_LE(relative_error(once, twice), 0.5 * error_bounds().at(GetParam()));
}

TEST_P(Encoders, GiveZerosForZeros) {
  const std::vector<float> zeros(2 * kBlock, 0.0f);
  for (const float weight : round_trip(encoder(), zeros)) EXPECT_EQ(weight, 0.0f);
  std::vector<float> negative(kBlock, -0.0f);
  for (const float weight : round_trip(encoder(), negative)) EXPECT_EQ(weight, 0.0f);
}

TEST_P(Encoders, HoldConstants) {
  for (const float value : {1.0f, -1.0f, 0.03125f, -0.0371f, 3e-4f, 1000.0f}) {
    const std::vector<float> weights(kBlock, value);
    const double bound = is_float() ? 0.005 : 0.2;
    EXPECT_LE(relative_error(weights, round_trip(encoder(), weights)), bound) << value;
  }
}

// One group of zeros among others, and weights of one sign only.
TEST_P(Encoders, HandleMixedBlocks) {
  std::vector<float> weights = bells(kBlock, 3, 1.0);
  std::fill_n(weights.begin() + 32, 32, 0.0f);
  const std::vector<float> found = round_trip(encoder(), weights);
  for (size_t i = 32; i < 64; ++i) EXPECT_NEAR(found[i], 0.0f, 0.35f) << i;
  for (float& weight : weights) weight = std::fabs(weight);
  const double bound = 1.5 * error_bounds().at(GetParam());
  EXPECT_LE(relative_error(weights, round_trip(encoder(), weights)), bound);
}

TEST_P(Encoders, KeepAnOutlierWithoutLosingSight) {
  for (const size_t at : {size_t{0}, size_t{37}, size_t{255}}) {
    for (const float outlier : {50.0f, -50.0f}) {
      std::vector<float> weights = bells(kBlock, 4, 0.1);
      weights[at] = outlier;
      const std::vector<float> found = round_trip(encoder(), weights);
      EXPECT_NEAR(found[at], outlier, 15.0f) << at;
      for (const float weight : found) EXPECT_TRUE(std::isfinite(weight));
    }
  }
}

// From where binary16 scales are subnormal down to where f32 is, and up to the limit: never a NaN,
// never worse than writing zeros.
TEST_P(Encoders, SurviveEveryMagnitude) {
  for (int exponent = -149; exponent <= 15; ++exponent) {
    std::vector<float> weights = bells(kBlock, 5, 0.5);
    for (float& weight : weights) {
      weight = std::clamp(std::ldexp(weight, exponent), -encoder().max_magnitude,
                          encoder().max_magnitude);
    }
    const std::vector<float> found = round_trip(encoder(), weights);
    double error = 0;
    double squares = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_TRUE(std::isfinite(found[i])) << "2^" << exponent;
      const double away = static_cast<double>(found[i]) - static_cast<double>(weights[i]);
      error += away * away;
      squares += static_cast<double>(weights[i]) * static_cast<double>(weights[i]);
    }
    EXPECT_LE(error, 1.05 * squares + 256 * 0x1p-40) << "2^" << exponent;
  }
}

TEST_P(Encoders, HoldTheirLargestMagnitude) {
  RandomStream random(6);
  std::vector<float> weights(kBlock);
  for (float& weight : weights) {
    weight = (random.bits() & 1) != 0 ? encoder().max_magnitude : -encoder().max_magnitude;
  }
  const std::vector<float> found = round_trip(encoder(), weights);
  size_t n_turned = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    ASSERT_TRUE(std::isfinite(found[i]));
    n_turned += std::signbit(found[i]) != std::signbit(weights[i]) ? 1u : 0u;
  }
  // Types whose signs are of even parity turn one of eight where they must.
  EXPECT_LE(n_turned, kBlock / 8);
}

TEST_P(Encoders, FindWeightsThatDoNotFit) {
  std::vector<float> weights = bells(3 * kBlock, 7, 1.0);
  EXPECT_EQ(first_unfit(encoder(), weights), weights.size());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    weights[300] = bad;
    EXPECT_EQ(first_unfit(encoder(), weights), 300u);
    EXPECT_NE(unfit_reason(encoder(), bad).find("finite"), std::string::npos);
  }
  if (encoder().max_magnitude >= std::numeric_limits<float>::max()) return;
  weights[300] = std::nextafter(encoder().max_magnitude, std::numeric_limits<float>::infinity());
  EXPECT_EQ(first_unfit(encoder(), weights), 300u);
  EXPECT_NE(unfit_reason(encoder(), weights[300]).find("up to"), std::string::npos);
}

TEST_P(Encoders, GiveTheSameBytesOnAnyNumberOfThreads) {
  const std::vector<float> weights = bells(200 * kBlock, 8, 0.02);
  const std::vector<std::byte> expected = encode(encoder(), weights);
  for (const size_t n_threads : {1u, 2u, 3u}) {
    ThreadPool pool(n_threads);
    std::vector<std::byte> bytes(expected.size());
    encode_weights(encoder(), weights, pool, bytes);
    EXPECT_EQ(bytes, expected) << n_threads;
  }
}

TEST(EncodeTable, HasARowOnlyForTypesThatCanBeDecoded) {
  for (const Encoder& encoder : encoders()) {
    EXPECT_NE(find_format(encoder.type), nullptr) << tensor_type_name(encoder.type);
    EXPECT_EQ(find_encoder(encoder.type), &encoder);
  }
  EXPECT_EQ(find_encoder(TensorType::kI32), nullptr);
}

// The codes that other quantisers write, too.
TEST(EncodeQ8_0, RoundsToTheNearestOf127Steps) {
  std::vector<float> weights(32);
  for (size_t i = 0; i < 32; ++i) weights[i] = 0.5f * (static_cast<float>(i) - 31.0f);
  const std::vector<std::byte> bytes = encode(*find_encoder(TensorType::kQ8_0), weights);
  uint16_t d = 0;
  std::memcpy(&d, bytes.data(), sizeof(d));
  EXPECT_EQ(d, f32_to_f16(15.5f / 127.0f));
  EXPECT_EQ(static_cast<int8_t>(bytes[2]), -127);
  EXPECT_EQ(static_cast<int8_t>(bytes[33]), 0);
  EXPECT_EQ(static_cast<int8_t>(bytes[32]), static_cast<int8_t>(std::round(-0.5 * 127 / 15.5)));
}

// Arguments of every kernel, from one seed.
struct KernelCase {
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> scale;
  std::vector<float> offset;
  std::vector<float> table;

  explicit KernelCase(uint64_t seed)
      : x(bells(32, seed, 1.0)), w(bells(32, seed + 1, 1.0)), scale(8), offset(8), table(16) {
    for (float& weight : w) weight = std::fabs(weight);
    for (size_t k = 0; k < 8; ++k) {
      scale[k] = 0.1f + 0.05f * static_cast<float>(k);
      offset[k] = -0.3f * static_cast<float>(k);
    }
    for (size_t i = 0; i < 16; ++i) table[i] = static_cast<float>(i * i) / 16.0f - 7.0f;
  }
  [[nodiscard]] std::vector<float> run(const EncodeKernels& kernels) const {
    std::vector<float> inverse(8);
    for (size_t k = 0; k < 8; ++k) inverse[k] = 1.0f / scale[k];
    const GroupArgs group{.x = x.data(), .w = w.data(), .n = 32};
    std::vector<float> out(8 * 13);
    ScaleLanes scales;
    LineLanes lines;
    kernels.try_scales(group, {-8, 7}, inverse.data(), scales);
    std::memcpy(out.data(), &scales, sizeof(scales));
    kernels.try_table_scales(group, table.data(), inverse.data(), scales);
    std::memcpy(out.data() + 16, &scales, sizeof(scales));
    kernels.scale_errors(group, {-8, 7}, scale.data(), inverse.data(), out.data() + 32);
    kernels.table_scale_errors(group, table.data(), scale.data(), inverse.data(), out.data() + 40);
    kernels.try_lines(group, 15, inverse.data(), offset.data(), lines);
    std::memcpy(out.data() + 48, &lines, sizeof(lines));
    kernels.line_errors(group, 15, scale.data(), inverse.data(), offset.data(), out.data() + 72);
    run_grid(kernels, out.data() + 80);
    return out;
  }
  void run_grid(const EncodeKernels& kernels, float* out) const {
    const std::vector<float> levels = bells(64 * 8, 77, 10.0);
    std::vector<float> tables(3 * 64);
    const GridPoints grid{.levels = levels.data(), .n_points = 64, .n_weights = 8};
    kernels.grid_sums(grid, x.data(), w.data(), tables.data(), tables.data() + 64,
                      tables.data() + 128);
    for (size_t i = 0; i < tables.size(); ++i) out[i % 8] += tables[i];
    kernels.grid_minima(tables.data(), tables.data() + 64, 64, scale.data(), 8, out + 8);
    for (size_t k = 0; k < 8; ++k) {
      out[16 + k] = static_cast<float>(
          kernels.grid_nearest(tables.data(), tables.data() + 128, 64, scale[k]));
    }
  }
};

TEST(EncodeKernels, GiveTheSameBitsOnEveryInstructionSet) {
  for (uint64_t seed = 1; seed < 200; seed += 2) {
    const KernelCase arguments(seed);
    const std::vector<float> expected = arguments.run(encode_kernels(Isa::kGeneric));
    if (detected_isa() == Isa::kGeneric) GTEST_SKIP() << "this processor has no AVX2";
    const std::vector<float> found = arguments.run(encode_kernels(Isa::kAvx2));
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0)
        << seed;
  }
}

// The kernels' exact search against one over all points and signs.
TEST(EncodeGrid, NearestPointIsTheNearest) {
  const KernelCase arguments(3);
  const std::vector<float> levels = bells(64 * 8, 78, 10.0);
  const GridPoints grid{.levels = levels.data(), .n_points = 64, .n_weights = 8};
  std::vector<float> squares(64);
  std::vector<float> products(64);
  std::vector<float> x(8);
  for (size_t i = 0; i < 8; ++i) x[i] = std::fabs(arguments.x[i]);
  const EncodeKernels& kernels = encode_kernels();
  kernels.grid_sums(grid, x.data(), arguments.w.data(), squares.data(), products.data(), nullptr);
  const float scale = 0.1f;
  double least = 1e30;
  size_t nearest = 0;
  for (size_t p = 0; p < 64; ++p) {
    double error = 0;
    for (size_t i = 0; i < 8; ++i) {
      const auto away = static_cast<double>(scale * levels[i * 64 + p] - x[i]);
      error += static_cast<double>(arguments.w[i]) * away * away;
    }
    if (error < least) {
      least = error;
      nearest = p;
    }
  }
  EXPECT_EQ(kernels.grid_nearest(squares.data(), products.data(), 64, scale), nearest);
}

}  // namespace
}  // namespace godwit::quant
