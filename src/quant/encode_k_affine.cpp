// Q4_K and Q5_K: 256 weights in eight groups, each with its own scale and offset in units of the
// block's d and dmin. Importance: the group's root mean square plus the weight's magnitude, since
// large weights meet large activations more often than not.
#include <array>
#include <cmath>

#include "quant/encode_affine.h"
#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/encode_half.h"
#include "quant/k_scales.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"

namespace godwit::quant {
namespace {

constexpr size_t kGroups = kKGroups;
constexpr int kMaxScale = 63;  // six bits

using Weights256 = std::span<const float, 256>;

struct KAffine {
  HalfScale d;
  HalfScale dmin;
  std::array<KScaleMin, kGroups> groups{};
  double error = 0;
};

AffineGroup group_of(std::span<const float, 256> block, size_t group) {
  return block.subspan(group * kAffineGroup).first<kAffineGroup>();
}

std::array<float, 256> importance(Weights256 x) {
  std::array<float, 256> w;
  for (size_t group = 0; group < kGroups; ++group) {
    const AffineGroup values = group_of(x, group);
    float squares = 0;
    for (const float value : values) squares += value * value;
    const float average = std::sqrt(squares / kAffineGroup);
    for (size_t i = 0; i < kAffineGroup; ++i) {
      w[group * kAffineGroup + i] = average + std::fabs(values[i]);
    }
  }
  return w;
}

int nearest_step(float value, float unit) {
  if (unit <= 0) return 0;
  return static_cast<int>(nearest_whole(std::min(std::max(value / unit, 0.0f), 63.0f)));
}

// The scale and minimum of one group among the steps around the exact ones. They are chosen
// together: rounding one the wrong way can make up for the rounding of the other.
struct Choice {
  KScaleMin steps;
  float error = 0;
};

Choice choose_steps(AffineGroup x, AffineGroup w, const Affine& line, const KAffine& block,
                    float last_code) {
  const int scale = nearest_step(line.scale, block.d.value);
  const int min = nearest_step(-line.offset, block.dmin.value);
  Choice best{.steps = {}, .error = -1};
  for (const int scale_step : {0, -1, 1}) {
    std::array<KScaleMin, kLanes> steps{};
    Lanes scales{};
    Lanes offsets{};
    for (int k = 0; k < static_cast<int>(kLanes); ++k) {
      const auto lane = static_cast<size_t>(k);
      // Around the minimum: -3 .. 4 steps.
      steps[lane] = {static_cast<uint8_t>(std::clamp(scale + scale_step, 0, kMaxScale)),
                     static_cast<uint8_t>(std::clamp(min + k - 3, 0, kMaxScale))};
      scales[lane] = block.d.value * static_cast<float>(steps[lane].scale);
      offsets[lane] = -block.dmin.value * static_cast<float>(steps[lane].min);
    }
    const Lanes errors = line_errors(group_args(x, w), last_code, scales, offsets);
    for (size_t k = 0; k < kLanes; ++k) {
      if (best.error < 0 || errors[k] < best.error) best = {steps[k], errors[k]};
    }
  }
  return best;
}

// The best d and dmin for the codes that the current ones lead to: a system of two equations.
struct BlockSums {
  double dd = 0, dm = 0, mm = 0, dx = 0, mx = 0;
};

float code_of(float x, float scale, float min, float last_code) {
  if (scale <= 0) return 0;
  return nearest_whole(std::min(std::max((x + min) / scale, 0.0f), last_code));
}

BlockSums block_sums(Weights256 x, std::span<const float, 256> w, const KAffine& block,
                     float last_code) {
  BlockSums sums;
  for (size_t group = 0; group < kGroups; ++group) {
    const auto s = static_cast<float>(block.groups[group].scale);
    const auto m = static_cast<float>(block.groups[group].min);
    float q1 = 0, q2 = 0, qx = 0, w1 = 0, x1 = 0;
    for (size_t i = 0; i < kAffineGroup; ++i) {
      const size_t at = group * kAffineGroup + i;
      const float q = code_of(x[at], block.d.value * s, block.dmin.value * m, last_code);
      q1 += w[at] * q;
      q2 += w[at] * q * q;
      qx += w[at] * q * x[at];
      w1 += w[at];
      x1 += w[at] * x[at];
    }
    sums.dd += static_cast<double>(s * s * q2);
    sums.dm -= static_cast<double>(s * m * q1);
    sums.mm += static_cast<double>(m * m * w1);
    sums.dx += static_cast<double>(s * qx);
    sums.mx -= static_cast<double>(m * x1);
  }
  return sums;
}

void choose_groups(Weights256 x, std::span<const float, 256> w,
                   const std::array<Affine, kGroups>& lines, float last_code, KAffine& block) {
  block.error = 0;
  for (size_t group = 0; group < kGroups; ++group) {
    const Choice choice =
        choose_steps(group_of(x, group), group_of(w, group), lines[group], block, last_code);
    block.groups[group] = choice.steps;
    block.error += static_cast<double>(choice.error);
  }
}

KAffine encode_k_affine(Weights256 x, float last_code) {
  const std::array<float, 256> w = importance(x);
  std::array<Affine, kGroups> lines;
  float max_scale = 0;
  float max_min = 0;
  for (size_t group = 0; group < kGroups; ++group) {
    lines[group] = fit_affine(group_of(x, group), group_of(w, group),
                              {.last_code = last_code, .sign = OffsetSign::kNotPositive});
    max_scale = std::max(max_scale, lines[group].scale);
    max_min = std::max(max_min, -lines[group].offset);
  }
  KAffine best{.d = half_scale(max_scale / 63.0f), .dmin = half_scale(max_min / 63.0f)};
  choose_groups(x, w, lines, last_code, best);
  for (int pass = 0; pass < 2; ++pass) {
    const BlockSums sums = block_sums(x, w, best, last_code);
    const double determinant = sums.dd * sums.mm - sums.dm * sums.dm;
    if (!(determinant > 0)) break;
    const double d = (sums.dx * sums.mm - sums.mx * sums.dm) / determinant;
    const double dmin = (sums.mx * sums.dd - sums.dx * sums.dm) / determinant;
    if (d <= 0 || dmin < 0) break;
    KAffine next{.d = half_scale(static_cast<float>(d)),
                 .dmin = half_scale(static_cast<float>(dmin))};
    if (next.d.bits == best.d.bits && next.dmin.bits == best.dmin.bits) break;
    choose_groups(x, w, lines, last_code, next);
    if (next.error >= best.error) break;
    best = next;
  }
  return best;
}

// The codes of one block, [256].
std::array<uint8_t, 256> codes_of(Weights256 x, const KAffine& block, float last_code) {
  std::array<uint8_t, 256> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    const KScaleMin& steps = block.groups[i / kAffineGroup];
    codes[i] =
        static_cast<uint8_t>(code_of(x[i], block.d.value * static_cast<float>(steps.scale),
                                     block.dmin.value * static_cast<float>(steps.min), last_code));
  }
  return codes;
}

// The low four bits, as both types pack them: groups 2c and 2c + 1 share 32 bytes.
void pack_low(const std::array<uint8_t, 256>& codes, uint8_t* qs) {
  for (size_t pair = 0; pair < 4; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t even = codes[64 * pair + i];
      const uint8_t odd = codes[64 * pair + 32 + i];
      qs[32 * pair + i] = static_cast<uint8_t>((even & 0x0f) | (odd & 0x0f) << 4);
    }
  }
}

}  // namespace

void encode_q4_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ4_K>(weights, out, [](Weights256 x) {
    const KAffine found = encode_k_affine(x, 15);
    BlockQ4_K block{.d = found.d.bits, .dmin = found.dmin.bits, .scales = {}, .qs = {}};
    pack_k_scales(found.groups.data(), block.scales);
    pack_low(codes_of(x, found, 15), block.qs);
    return block;
  });
}

void encode_q5_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ5_K>(weights, out, [](Weights256 x) {
    const KAffine found = encode_k_affine(x, 31);
    BlockQ5_K block{.d = found.d.bits, .dmin = found.dmin.bits, .scales = {}, .qh = {}, .qs = {}};
    pack_k_scales(found.groups.data(), block.scales);
    const std::array<uint8_t, 256> codes = codes_of(x, found, 31);
    pack_low(codes, block.qs);
    for (size_t i = 0; i < codes.size(); ++i) {
      block.qh[i % 32] = static_cast<uint8_t>(block.qh[i % 32] | (codes[i] >> 4) << (i / 32));
    }
    return block;
  });
}

}  // namespace godwit::quant
