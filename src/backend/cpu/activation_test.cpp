// Rounding of activations to eight bits: what it must be, and the same on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/kernel_table.h"
#include "base/random.h"
#include "testing/guarded_buffer.h"

namespace godwit::cpu {
namespace {

constexpr ActivationKind kKinds[] = {ActivationKind::kQ8Block32, ActivationKind::kQ8Block256};

// One token quantised in a guarded buffer that was filled with `filler` before.
struct Quantized {
  Quantized(ActivationKind kind, std::span<const float> x, Isa isa)
      : buffer(activation_bytes(kind, 1, x.size())), guarded_x(x.size_bytes()) {
    std::memcpy(guarded_x.bytes().data(), x.data(), x.size_bytes());
    const float* floats = guarded_x.as<float>().data();
    values = layout_activations(kind, floats, x.size(), 1, x.size(), buffer.bytes());
    quantize_activations(kind, values, floats, x.size(), x.size(), {0, 1}, isa);
  }
  testing::GuardedBuffer buffer;
  testing::GuardedBuffer guarded_x;
  Activations values;
};

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni, Isa::kAvx512Bf16}) {
    if (isa <= detected_isa()) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> random_row(size_t n, uint64_t seed, double magnitude) {
  RandomStream random(seed);
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(random.bell() * magnitude);
  return x;
}

int sum_over(const Activations& a, size_t begin, size_t n) {
  int sum = 0;
  for (size_t i = begin; i < begin + n; ++i) sum += a.q[i];
  return sum;
}

int16_t half_word(int32_t word, int which) {
  return static_cast<int16_t>(which == 0 ? word & 0xffff : word >> 16);
}

TEST(Activation, RoundsToTheNearestStepAndSumsWhatItRounded) {
  const std::vector<float> x = random_row(1024, 1, 3.0);
  for (const ActivationKind kind : kKinds) {
    const Quantized quantized(kind, x, Isa::kGeneric);
    const Activations& a = quantized.values;
    for (size_t i = 0; i < x.size(); ++i) {
      const float scale = a.scales[i / activation_block(kind)];
      EXPECT_LE(std::fabs(x[i] - scale * a.q[i]), 0.5001f * scale) << i;
    }
    if (kind == ActivationKind::kQ8Block32) {
      for (size_t b = 0; b < 32; ++b) EXPECT_EQ(a.sums[b], sum_over(a, 32 * b, 32)) << b;
      continue;
    }
    for (size_t b = 0; b < 4; ++b) {
      const int32_t* words = a.sums + kSumWordsPerBlock256 * b;
      for (size_t g = 0; g < 8; ++g) {
        EXPECT_EQ(half_word(words[g / 2], static_cast<int>(g % 2)),
                  sum_over(a, 256 * b + 32 * g, 32));
        EXPECT_EQ(half_word(words[4 + g], 0), sum_over(a, 256 * b + 16 * g, 16));
        EXPECT_EQ(half_word(words[4 + g], 1), sum_over(a, 256 * b + 128 + 16 * g, 16));
      }
    }
  }
}

TEST(Activation, BreaksTiesToEven) {
  std::vector<float> x(256, 0.0f);
  x[0] = 127.0f;  // the scale is 1
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = -3.5f;
  for (const Isa isa : available_isas()) {
    for (const ActivationKind kind : kKinds) {
      const Quantized quantized(kind, x, isa);
      const int8_t* q = quantized.values.q;
      EXPECT_EQ(quantized.values.scales[0], 1.0f);
      EXPECT_EQ(q[0], 127);
      EXPECT_EQ(q[1], 0);
      EXPECT_EQ(q[2], 2);
      EXPECT_EQ(q[3], -2);
      EXPECT_EQ(q[4], -4);
    }
  }
}

// Rows whose blocks hold everything awkward.
std::vector<std::vector<float>> awkward_rows() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> rows;
  for (const double magnitude : {1.0, 1e-3, 1e-20, 1e-30, 1e-36, 1e-38, 1e-44, 1e20, 1e37}) {
    for (uint64_t seed = 0; seed < 4; ++seed) rows.push_back(random_row(768, seed, magnitude));
  }
  rows.emplace_back(768, 0.0f);
  rows.emplace_back(768, -0.0f);
  rows.emplace_back(768, std::numeric_limits<float>::max());
  rows.emplace_back(768, -std::numeric_limits<float>::denorm_min());
  rows.emplace_back(768, 0x1p-100f);
  rows.emplace_back(768, 0x1.fffffep-101f);
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    rows.push_back(random_row(768, 9, 1.0));
    rows.back()[5] = bad;
    rows.back()[767] = bad;
  }
  return rows;
}

TEST(Activation, IsTheSameOnEveryInstructionSet) {
  for (const std::vector<float>& x : awkward_rows()) {
    for (const ActivationKind kind : kKinds) {
      const Quantized expected(kind, x, Isa::kGeneric);
      for (const Isa isa : available_isas()) {
        const Quantized actual(kind, x, isa);
        EXPECT_EQ(std::memcmp(actual.buffer.bytes().data(), expected.buffer.bytes().data(),
                              expected.buffer.bytes().size()),
                  0)
            << isa_name(isa) << " from " << x[0];
      }
    }
  }
}

TEST(Activation, MarksBlocksThatAreNotNumbersAndSparesTheirNeighbours) {
  std::vector<float> x = random_row(512, 3, 1.0);
  x[17] = std::numeric_limits<float>::infinity();
  for (const Isa isa : available_isas()) {
    for (const ActivationKind kind : kKinds) {
      const Quantized quantized(kind, x, isa);
      const Activations& a = quantized.values;
      EXPECT_TRUE(std::isnan(a.scales[0]));
      for (size_t i = 0; i < activation_block(kind); ++i) EXPECT_EQ(a.q[i], 0);
      EXPECT_TRUE(std::isfinite(a.scales[1]));
    }
  }
}

TEST(Activation, LaysTokensOutOnCacheLines) {
  for (const ActivationKind kind : kKinds) {
    const size_t cols = kind == ActivationKind::kQ8Block32 ? 96 : 256;
    const testing::GuardedBuffer buffer(activation_bytes(kind, 3, cols));
    const Activations a = layout_activations(kind, nullptr, 0, 3, cols, buffer.bytes());
    EXPECT_EQ(a.q_stride % 64, 0u);
    EXPECT_GE(a.q_stride, cols);
    EXPECT_EQ(a.scale_stride % 16, 0u);
    EXPECT_EQ(a.sum_stride % 16, 0u);
  }
}

TEST(ActivationPlanes, LeaveOnePartIn127Times254AndAgreeOnEveryIsa) {
  constexpr size_t kTokens = 3;
  constexpr size_t kCols = 768;
  const std::vector<float> x = random_row(kTokens * kCols, 12, 2.0);
  for (const ActivationKind kind : kKinds) {
    std::vector<float> expected;
    for (const Isa isa : available_isas()) {
      testing::GuardedBuffer buffer(activation_bytes(kind, 2 * kTokens, kCols));
      const Activations a =
          layout_activations(kind, x.data(), kCols, 2 * kTokens, kCols, buffer.bytes());
      quantize_planes(kind, a, x.data(), kCols, kTokens, kCols, {0, kTokens}, isa);
      std::vector<float> found;
      for (size_t t = 0; t < kTokens; ++t) {
        for (size_t c = 0; c < kCols; ++c) {
          const auto plane = [&](size_t row) {
            return a.scales[row * a.scale_stride + c / activation_block(kind)] *
                   static_cast<float>(a.q[row * a.q_stride + c]);
          };
          const float both = plane(t) + plane(kTokens + t);
          const float step = a.scales[t * a.scale_stride + c / activation_block(kind)] / 254.0f;
          EXPECT_LE(std::fabs(x[t * kCols + c] - both), 0.501f * step) << t << ' ' << c;
          found.push_back(both);
        }
      }
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace godwit::cpu
