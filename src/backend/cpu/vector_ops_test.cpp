// Every operation on every instruction set this processor has: against double precision, and bit
// for bit against the generic one, with data flush against a page that may not be touched.
#include "backend/cpu/vector_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/random.h"
#include "testing/guarded_buffer.h"

namespace godwit::cpu {
namespace {

using testing::GuardedBuffer;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kSizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 576, 1537};

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (isa <= detected_isa()) found.push_back(isa);
  }
  return found;
}

// n floats at the very end of their pages.
class Floats {
 public:
  explicit Floats(size_t n) : buffer_(n * sizeof(float)) {}
  Floats(size_t n, uint64_t seed, double spread) : Floats(n) {
    RandomStream random(seed);
    for (float& x : span()) x = static_cast<float>(random.bell() * spread);
  }
  [[nodiscard]] std::span<float> span() const { return buffer_.as<float>(); }
  [[nodiscard]] float* data() const { return span().data(); }
  float& operator[](size_t i) const { return span()[i]; }
  [[nodiscard]] double at(size_t i) const { return static_cast<double>(span()[i]); }
  [[nodiscard]] std::vector<uint32_t> bits() const {
    std::vector<uint32_t> found;
    for (const float x : span()) found.push_back(std::bit_cast<uint32_t>(x));
    return found;
  }

 private:
  GuardedBuffer buffer_;
};

// Runs `body(ops, out)` on every ISA, expects equal bits, and returns the generic result.
template <class Body>
std::vector<float> same_on_all(size_t n_out, Body body) {
  std::vector<float> first;
  for (const Isa isa : isas()) {
    const Floats out(n_out);
    body(vector_ops(isa), out.data());
    if (isa == Isa::kGeneric) {
      first.assign(out.span().begin(), out.span().end());
    } else {
      EXPECT_EQ(std::memcmp(first.data(), out.data(), n_out * sizeof(float)), 0)
          << isa_name(isa) << ", " << n_out << " numbers";
    }
  }
  return first;
}

TEST(VectorOps, RmsNormDividesByTheRootMeanSquare) {
  for (const size_t n : kSizes) {
    const Floats x(n, n, 3.0);
    const Floats w(n, n + 1, 1.0);
    const std::vector<float> out = same_on_all(n, [&](const VectorOps& ops, float* to) {
      ops.rms_norm(x.data(), w.data(), 1e-5f, to, n);
    });
    double squares = 0.0;
    for (size_t i = 0; i < n; ++i) squares += x.at(i) * x.at(i);
    const double factor =
        1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-5f));
    for (size_t i = 0; i < n; ++i) {
      const double expected = x.at(i) * factor * w.at(i);
      EXPECT_NEAR(static_cast<double>(out[i]), expected, 2e-7 * std::abs(expected))
          << n << " " << i;
    }
  }
}

TEST(VectorOps, RmsNormWorksInPlaceAndOnZeros) {
  for (const Isa isa : isas()) {
    const Floats x(33, 5, 1.0);
    const Floats w(33, 6, 1.0);
    const Floats out(33);
    vector_ops(isa).rms_norm(x.data(), w.data(), 1e-6f, out.data(), 33);
    vector_ops(isa).rms_norm(x.data(), w.data(), 1e-6f, x.data(), 33);
    EXPECT_EQ(x.bits(), out.bits());
    const Floats zeros(16);
    vector_ops(isa).rms_norm(zeros.data(), w.data(), 1e-6f, out.data(), 16);
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(out[i], 0.0f);
  }
}

// Large terms in some lanes, small ones in others: another order of additions is another result.
TEST(VectorOps, RmsNormSumsWithoutLosingSmallTerms) {
  const Floats x(4096);
  const Floats w(4096);
  for (size_t i = 0; i < 4096; ++i) {
    x[i] = i % 97 == 0 ? 1e4f : 1e-2f;
    w[i] = 1.0f;
  }
  same_on_all(4096, [&](const VectorOps& ops, float* to) {
    ops.rms_norm(x.data(), w.data(), 0.0f, to, 4096);
  });
}

TEST(VectorOps, AddAndScaleRoundOnce) {
  for (const size_t n : kSizes) {
    const Floats x(n, n, 1.0);
    const Floats y(n, n + 7, 1.0);
    const std::vector<float> sum = same_on_all(n, [&](const VectorOps& ops, float* to) {
      std::memcpy(to, y.data(), n * sizeof(float));
      ops.add(to, x.data(), n);
    });
    const std::vector<float> scaled =
        same_on_all(n, [&](const VectorOps& ops, float* to) { ops.scale(x.data(), 1.7f, to, n); });
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(sum[i], x[i] + y[i]);
      EXPECT_EQ(scaled[i], x[i] * 1.7f);
    }
  }
}

TEST(VectorOps, ExpIsWithinTwoUnits) {
  constexpr size_t kCount = 400000;
  const Floats x(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(-87.33 + 175.6 * static_cast<double>(i) / kCount);
  }
  const std::vector<float> out =
      same_on_all(kCount, [&](const VectorOps& ops, float* to) { ops.exp(x.data(), to, kCount); });
  double worst = 0.0;
  for (size_t i = 0; i < kCount; ++i) {
    const double expected = std::exp(x.at(i));
    worst = std::max(worst, std::abs(static_cast<double>(out[i]) - expected) / expected);
  }
  EXPECT_LE(worst, 2e-7);
}

TEST(VectorOps, ExpAtTheEnds) {
  const Floats x(12);
  const float given[] = {0.0f,   -0.0f, -87.4f, -1e30f,  -kInf,         88.3f,
                         100.0f, kInf,  1e-30f, -1e-30f, std::nanf(""), -87.33f};
  std::ranges::copy(given, x.data());
  std::vector<std::vector<float>> all;
  for (const Isa isa : isas()) {
    std::vector<float> out(12);
    vector_ops(isa).exp(x.data(), out.data(), 12);
    EXPECT_EQ(out[0], 1.0f);
    EXPECT_EQ(out[1], 1.0f);
    EXPECT_EQ(out[2], 0.0f);
    EXPECT_EQ(out[3], 0.0f);
    EXPECT_EQ(out[4], 0.0f);
    EXPECT_TRUE(std::isfinite(out[5]));
    EXPECT_TRUE(std::isfinite(out[6]));
    EXPECT_TRUE(std::isfinite(out[7]));
    EXPECT_GT(out[7], 2e38f);
    EXPECT_EQ(out[8], 1.0f);
    EXPECT_EQ(out[9], 1.0f);
    EXPECT_TRUE(std::isnan(out[10]));
    EXPECT_GT(out[11], 0.0f);
  }
}

TEST(VectorOps, SiluAndGeluGate) {
  for (const size_t n : kSizes) {
    const Floats g(n, n, 4.0);
    const Floats u(n, n + 1, 1.0);
    const std::vector<float> silu = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.silu_mul(g.data(), u.data(), to, n); });
    const std::vector<float> gelu = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.gelu_mul(g.data(), u.data(), to, n); });
    for (size_t i = 0; i < n; ++i) {
      const double expected = g.at(i) / (1.0 + std::exp(-g.at(i))) * u.at(i);
      EXPECT_NEAR(static_cast<double>(silu[i]), expected, 5e-7 * std::abs(expected));
      const double inner = 0.7978845608028654 * (g.at(i) + 0.044715 * std::pow(g.at(i), 3));
      const double bent = 0.5 * g.at(i) * (1.0 + std::tanh(inner)) * u.at(i);
      EXPECT_NEAR(static_cast<double>(gelu[i]), bent, 2e-6 * std::abs(bent) + 1e-7);
    }
  }
}

// Spread so that gates lie above the clamp, and values above and below it.
TEST(VectorOps, ClampedSwigluGates) {
  for (const size_t n : kSizes) {
    const Floats g(n, n, 9.0);
    const Floats u(n, n + 1, 9.0);
    const std::vector<float> out = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.swiglu_clamped(g.data(), u.data(), to, n); });
    for (size_t i = 0; i < n; ++i) {
      const double gate = std::min(g.at(i), 7.0);
      const double expected =
          gate / (1.0 + std::exp(-1.702 * gate)) * (std::clamp(u.at(i), -7.0, 7.0) + 1.0);
      EXPECT_NEAR(static_cast<double>(out[i]), expected, 2e-6 * std::abs(expected) + 1e-7);
    }
  }
}

TEST(VectorOps, SiluHasTheRightLimits) {
  const Floats g(4);
  const Floats u(4);
  const float given[] = {200.0f, -200.0f, 0.0f, -20.0f};
  std::ranges::copy(given, g.data());
  std::ranges::fill(u.span(), 1.0f);
  for (const Isa isa : isas()) {
    vector_ops(isa).silu_mul(g.data(), u.data(), u.data(), 4);  // in place
    EXPECT_EQ(u[0], 200.0f);
    EXPECT_NEAR(u[1], 0.0f, 1e-30f);
    EXPECT_EQ(u[2], 0.0f);
    EXPECT_NEAR(u[3], -20.0f * std::exp(-20.0f), 1e-14f);
    std::ranges::fill(u.span(), 1.0f);
  }
}

TEST(VectorOps, SoftcapBendsTowardsTheCap) {
  for (const size_t n : kSizes) {
    const Floats x(n, n, 40.0);
    const std::vector<float> out = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.softcap(x.data(), 30.0f, to, n); });
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(static_cast<double>(out[i]), 30.0 * std::tanh(x.at(i) / 30.0), 1e-5);
    }
  }
}

TEST(VectorOps, SigmoidMulScalesByTheGate) {
  for (const size_t n : kSizes) {
    const Floats gate(n, n, 4.0);
    const Floats y(n, n + 1, 1.0);
    const std::vector<float> out = same_on_all(n, [&](const VectorOps& ops, float* to) {
      std::copy_n(y.data(), n, to);
      ops.sigmoid_mul(gate.data(), to, n);
    });
    for (size_t i = 0; i < n; ++i) {
      const double expected = y.at(i) / (1.0 + std::exp(-gate.at(i)));
      EXPECT_NEAR(static_cast<double>(out[i]), expected, 5e-7 * std::abs(expected));
    }
  }
}

TEST(VectorOps, UnitLengthDividesByTheLength) {
  for (const size_t n : kSizes) {
    const Floats x(n, n, 3.0);
    const std::vector<float> out = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.unit_length(x.data(), 1e-6f, to, n); });
    double squares = 0.0;
    for (size_t i = 0; i < n; ++i) squares += x.at(i) * x.at(i);
    const double factor = 1.0 / std::sqrt(squares + static_cast<double>(1e-6f));
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(static_cast<double>(out[i]), x.at(i) * factor, 2e-7 * std::abs(x.at(i) * factor));
    }
  }
}

// Added under the root, not the least length: at a length of sqrt(epsilon) the two differ by
// sqrt(2).
TEST(VectorOps, UnitLengthAddsItsEpsilonUnderTheRoot) {
  const Floats x(16);
  x[3] = 1e-3f;
  const std::vector<float> out = same_on_all(
      16, [&](const VectorOps& ops, float* to) { ops.unit_length(x.data(), 1e-6f, to, 16); });
  EXPECT_NEAR(out[3], std::sqrt(0.5f), 1e-6f);
}

TEST(VectorOps, ConvolveWeighsRowsAndBends) {
  for (const size_t n : kSizes) {
    const Floats rows[] = {Floats(n, n, 1.0), Floats(n, n + 1, 1.0), Floats(n, n + 2, 1.0)};
    const Floats taps[] = {Floats(n, n + 3, 1.0), Floats(n, n + 4, 1.0), Floats(n, n + 5, 1.0)};
    const float* const row_data[] = {rows[0].data(), rows[1].data(), rows[2].data()};
    const float* const tap_data[] = {taps[0].data(), taps[1].data(), taps[2].data()};
    const std::vector<float> out = same_on_all(
        n, [&](const VectorOps& ops, float* to) { ops.convolve(row_data, tap_data, 3, to, n); });
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t r = 0; r < 3; ++r) sum += rows[r].at(i) * taps[r].at(i);
      EXPECT_NEAR(static_cast<double>(out[i]), sum / (1.0 + std::exp(-sum)), 2e-6) << n << " " << i;
    }
  }
}

struct RopeCase {
  size_t n_rot;
  size_t head_dim;
};

TEST(VectorOps, RopeTurnsPairs) {
  for (const RopeCase c : {RopeCase{2, 2}, {8, 8}, {16, 32}, {64, 64}, {48, 80}, {128, 128}}) {
    const Floats x(c.head_dim, c.head_dim, 1.0);
    const Floats cos(c.n_rot / 2);
    const Floats sin(c.n_rot / 2);
    for (size_t i = 0; i < c.n_rot / 2; ++i) {
      cos[i] = std::cos(static_cast<float>(i) + 0.3f);
      sin[i] = std::sin(static_cast<float>(i) + 0.3f);
    }
    const std::vector<float> adjacent =
        same_on_all(c.head_dim, [&](const VectorOps& ops, float* to) {
          ops.rope_adjacent(x.data(), cos.data(), sin.data(), to, c.n_rot, c.head_dim);
        });
    const std::vector<float> halves = same_on_all(c.head_dim, [&](const VectorOps& ops, float* to) {
      ops.rope_halves(x.data(), cos.data(), sin.data(), to, c.n_rot, c.head_dim);
    });
    const size_t half = c.n_rot / 2;
    const auto turned = [&](size_t first, size_t second, size_t i, const std::vector<float>& out) {
      EXPECT_NEAR(static_cast<double>(out[first]),
                  x.at(first) * cos.at(i) - x.at(second) * sin.at(i), 4e-7);
      EXPECT_NEAR(static_cast<double>(out[second]),
                  x.at(first) * sin.at(i) + x.at(second) * cos.at(i), 4e-7);
    };
    for (size_t i = 0; i < half; ++i) {
      turned(2 * i, 2 * i + 1, i, adjacent);
      turned(i, half + i, i, halves);
    }
    for (size_t i = c.n_rot; i < c.head_dim; ++i) {
      EXPECT_EQ(adjacent[i], x[i]);
      EXPECT_EQ(halves[i], x[i]);
    }
    for (const Isa isa : isas()) {  // in place
      Floats copy(c.head_dim);
      std::ranges::copy(x.span(), copy.data());
      vector_ops(isa).rope_halves(copy.data(), cos.data(), sin.data(), copy.data(), c.n_rot,
                                  c.head_dim);
      EXPECT_TRUE(std::ranges::equal(copy.span(), halves));
      std::ranges::copy(x.span(), copy.data());
      vector_ops(isa).rope_adjacent(copy.data(), cos.data(), sin.data(), copy.data(), c.n_rot,
                                    c.head_dim);
      EXPECT_TRUE(std::ranges::equal(copy.span(), adjacent));
    }
  }
}

// Every bit pattern of 16 bits there and back, and f32 values around each rounding border.
TEST(VectorOps, HalvesConvertAsTheScalarFunctions) {
  constexpr size_t kAll = 65536;
  std::vector<uint16_t> halves(kAll);
  for (size_t i = 0; i < kAll; ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> borders;
  for (size_t i = 0; i < kAll; ++i) {
    for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      borders.push_back(std::bit_cast<float>(static_cast<uint32_t>(i) << 16 | low));
    }
  }
  for (const Isa isa : isas()) {
    const VectorOps& ops = vector_ops(isa);
    std::vector<float> wide(kAll);
    std::vector<uint16_t> narrow(borders.size());
    const auto same = [](float a, float b) {
      return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    };
    size_t wrong = 0;
    ops.f16_to_f32(halves.data(), wide.data(), kAll);
    for (size_t i = 0; i < kAll; ++i) wrong += same(wide[i], f16_to_f32(halves[i])) ? 0u : 1u;
    EXPECT_EQ(wrong, 0u) << isa_name(isa) << " f16_to_f32";
    ops.bf16_to_f32(halves.data(), wide.data(), kAll);
    for (size_t i = 0; i < kAll; ++i) wrong += same(wide[i], bf16_to_f32(halves[i])) ? 0u : 1u;
    EXPECT_EQ(wrong, 0u) << isa_name(isa) << " bf16_to_f32";
    ops.f32_to_f16(borders.data(), narrow.data(), borders.size());
    for (size_t i = 0; i < narrow.size(); ++i)
      wrong += narrow[i] == f32_to_f16(borders[i]) ? 0u : 1u;
    EXPECT_EQ(wrong, 0u) << isa_name(isa) << " f32_to_f16";
    ops.f32_to_bf16(borders.data(), narrow.data(), borders.size());
    for (size_t i = 0; i < narrow.size(); ++i) {
      wrong += narrow[i] == f32_to_bf16(borders[i]) ? 0u : 1u;
    }
    EXPECT_EQ(wrong, 0u) << isa_name(isa) << " f32_to_bf16";
  }
}

TEST(VectorOps, ConversionsStayInsideTheirBuffers) {
  for (const size_t n : kSizes) {
    const Floats x(n, n, 1.0);
    for (const Isa isa : isas()) {
      const GuardedBuffer words(n * sizeof(uint16_t));
      const Floats back(n);
      vector_ops(isa).f32_to_f16(x.data(), words.as<uint16_t>().data(), n);
      vector_ops(isa).f16_to_f32(words.as<uint16_t>().data(), back.data(), n);
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(back[i], x[i], 0.002f);
      vector_ops(isa).f32_to_bf16(x.data(), words.as<uint16_t>().data(), n);
      vector_ops(isa).bf16_to_f32(words.as<uint16_t>().data(), back.data(), n);
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(back[i], x[i], 0.02f);
    }
  }
}

}  // namespace
}  // namespace godwit::cpu
