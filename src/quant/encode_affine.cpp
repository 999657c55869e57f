// Q2_K, Q4_K and Q5_K: 256 weights in groups with a scale and a minimum each.
#include <array>

#include "quant/encode_affine_groups.h"
#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/k_scales.h"
#include "quant/q2_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"

namespace godwit::quant {
namespace {

using Q2KSpec = AffineGroupsSpec<16, 16, 15, 3>;
using Q4KSpec = AffineGroupsSpec<8, 32, 63, 15>;
using Q5KSpec = AffineGroupsSpec<8, 32, 63, 31>;

template <class Spec>
void pack_steps(const AffineGroups<Spec>& groups, uint8_t* scales) {
  std::array<KScaleMin, kKGroups> steps;
  for (size_t group = 0; group < steps.size(); ++group) {
    steps[group] = {.scale = static_cast<uint8_t>(groups.groups[group].scale),
                    .min = static_cast<uint8_t>(groups.groups[group].min)};
  }
  pack_k_scales(steps.data(), scales);
}

// The low four bits of Q4_K and Q5_K: groups 2c and 2c + 1 share 32 bytes.
void pack_low(const std::array<uint8_t, 256>& codes, uint8_t* qs) {
  for (size_t pair = 0; pair < 4; ++pair) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t even = codes[64 * pair + i];
      const uint8_t odd = codes[64 * pair + 32 + i];
      qs[32 * pair + i] = static_cast<uint8_t>((even & 0x0f) | (odd & 0x0f) << 4);
    }
  }
}

BlockQ2_K encode_q2_k_block(Weights256 x) {
  const auto found = encode_affine_groups<Q2KSpec>(x);
  BlockQ2_K block{};
  block.d = found.d.bits;
  block.dmin = found.dmin.bits;
  for (size_t group = 0; group < Q2KSpec::kGroups; ++group) {
    const AffineSteps& steps = found.groups[group];
    block.scales[group] = static_cast<uint8_t>(steps.scale | steps.min << 4);
  }
  const std::array<uint8_t, 256> codes = affine_codes(x, found);
  for (size_t i = 0; i < codes.size(); ++i) {
    uint8_t& byte = block.qs[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | codes[i] << (2 * (i / 32 % 4)));
  }
  return block;
}

BlockQ4_K encode_q4_k_block(Weights256 x) {
  const auto found = encode_affine_groups<Q4KSpec>(x);
  BlockQ4_K block{};
  block.d = found.d.bits;
  block.dmin = found.dmin.bits;
  pack_steps(found, block.scales);
  pack_low(affine_codes(x, found), block.qs);
  return block;
}

BlockQ5_K encode_q5_k_block(Weights256 x) {
  const auto found = encode_affine_groups<Q5KSpec>(x);
  BlockQ5_K block{};
  block.d = found.d.bits;
  block.dmin = found.dmin.bits;
  pack_steps(found, block.scales);
  const std::array<uint8_t, 256> codes = affine_codes(x, found);
  pack_low(codes, block.qs);
  for (size_t i = 0; i < codes.size(); ++i) {
    uint8_t& byte = block.qh[i % 32];
    byte = static_cast<uint8_t>(byte | (codes[i] >> 4) << (i / 32));
  }
  return block;
}

}  // namespace

void encode_q2_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ2_K>(weights, out, encode_q2_k_block);
}

void encode_q4_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ4_K>(weights, out, encode_q4_k_block);
}

void encode_q5_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ5_K>(weights, out, encode_q5_k_block);
}

}  // namespace godwit::quant
