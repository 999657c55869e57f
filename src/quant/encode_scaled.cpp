// Q3_K, Q6_K, IQ4_NL and IQ4_XS: one scale per group and no minimum.
#include <array>
#include <cmath>

#include "quant/codebooks.h"
#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/encode_importance.h"
#include "quant/encode_scaled_groups.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/q3_k.h"
#include "quant/q6_k.h"

namespace godwit::quant {
namespace {

constexpr std::array<float, 16> kIq4Levels = [] {
  std::array<float, 16> levels{};
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = kIq4Values.values[i];
  return levels;
}();

using Iq4Levels = TableLevels<kIq4Levels>;
using Q3KSpec = ScaledGroupsSpec<UniformLevels<-4, 3>, 16, 16, -32>;
using Q6KSpec = ScaledGroupsSpec<UniformLevels<-32, 31>, 16, 16, -128>;
using Iq4XsSpec = ScaledGroupsSpec<Iq4Levels, 8, 32, -32>;

using Weights256 = std::span<const float, 256>;
using Codes256 = std::array<uint8_t, 256>;

constexpr float kIq4Floor = 2;  // of the importance, in mean squares

// 32 codes of four bits: those of the first half low, of the second high.
void pack_halves(const uint8_t* codes, uint8_t* qs) {
  for (size_t i = 0; i < 16; ++i) qs[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
}

BlockQ3_K encode_q3_k_block(Weights256 x) {
  const auto groups = encode_scaled_groups<Q3KSpec>(x, squares_of(x));
  const Codes256 codes = scaled_codes<Q3KSpec>(x, groups);
  BlockQ3_K block{};
  block.d = groups.d.bits;
  for (size_t j = 0; j < 16; ++j) {
    const int scale = groups.scales[j] + 32;
    uint8_t& low = block.scales[j % 8];
    uint8_t& high = block.scales[8 + j % 4];
    low = static_cast<uint8_t>(low | (scale & 0x0f) << (4 * (j / 8)));
    high = static_cast<uint8_t>(high | (scale >> 4) << (2 * (j / 4)));
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    uint8_t& low = block.qs[32 * (i / 128) + i % 32];
    uint8_t& high = block.qh[i % 32];
    low = static_cast<uint8_t>(low | (codes[i] & 3) << (2 * (i / 32 % 4)));
    high = static_cast<uint8_t>(high | (codes[i] >> 2) << (i / 32));
  }
  return block;
}

BlockQ6_K encode_q6_k_block(Weights256 x) {
  const auto groups = encode_scaled_groups<Q6KSpec>(x, squares_of(x));
  const Codes256 codes = scaled_codes<Q6KSpec>(x, groups);
  BlockQ6_K block{};
  block.d = groups.d.bits;
  for (size_t j = 0; j < 16; ++j) block.scales[j] = static_cast<int8_t>(groups.scales[j]);
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t* q = codes.data() + 128 * half + i;  // of k = 0; the others 32 apart
      uint8_t* ql = block.ql + 64 * half + i;
      ql[0] = static_cast<uint8_t>((q[0] & 0x0f) | (q[64] & 0x0f) << 4);
      ql[32] = static_cast<uint8_t>((q[32] & 0x0f) | (q[96] & 0x0f) << 4);
      block.qh[32 * half + i] =
          static_cast<uint8_t>(q[0] >> 4 | q[32] >> 4 << 2 | q[64] >> 4 << 4 | q[96] >> 4 << 6);
    }
  }
  return block;
}

BlockIQ4_XS encode_iq4_xs_block(Weights256 x) {
  const auto groups = encode_scaled_groups<Iq4XsSpec>(x, floored_magnitudes(x, kIq4Floor));
  const Codes256 codes = scaled_codes<Iq4XsSpec>(x, groups);
  BlockIQ4_XS block{};
  block.d = groups.d.bits;
  for (size_t j = 0; j < 8; ++j) {
    const int scale = groups.scales[j] + 32;
    uint8_t& low = block.scales_low[j / 2];
    low = static_cast<uint8_t>(low | (scale & 0x0f) << (4 * (j % 2)));
    block.scales_high = static_cast<uint16_t>(block.scales_high | (scale >> 4) << (2 * j));
    pack_halves(codes.data() + 32 * j, block.qs + 16 * j);
  }
  return block;
}

BlockIQ4_NL encode_iq4_nl_block(std::span<const float, 32> x) {
  const HalfScale scale = half_scale(
      fit_scale<Iq4Levels>(x, std::span<const float, 32>(floored_magnitudes(x, kIq4Floor))));
  std::array<uint8_t, 32> codes;
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = code_at<Iq4Levels>(x[i], scale.value);
  BlockIQ4_NL block{.d = scale.bits, .qs = {}};
  pack_halves(codes.data(), block.qs);
  return block;
}

}  // namespace

void encode_q3_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ3_K>(weights, out, encode_q3_k_block);
}

void encode_q6_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ6_K>(weights, out, encode_q6_k_block);
}

void encode_iq4_nl(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockIQ4_NL>(weights, out, encode_iq4_nl_block);
}

void encode_iq4_xs(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockIQ4_XS>(weights, out, encode_iq4_xs_block);
}

}  // namespace godwit::quant
