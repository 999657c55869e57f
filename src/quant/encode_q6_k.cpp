// Q6_K: 16 groups of 16 weights. Importance: the weight's square.
#include <array>

#include "quant/encode_blocks.h"
#include "quant/encode_functions.h"
#include "quant/encode_scaled_groups.h"
#include "quant/q6_k.h"

namespace godwit::quant {
namespace {

using Q6KSpec = ScaledGroupsSpec<UniformLevels<-32, 31>, 16, 16, -128>;

BlockQ6_K pack(const ScaledGroups<Q6KSpec>& groups, const std::array<uint8_t, 256>& codes) {
  BlockQ6_K block{};
  block.d = groups.d.bits;
  for (size_t j = 0; j < 16; ++j) block.scales[j] = static_cast<int8_t>(groups.scales[j]);
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t* q = codes.data() + 128 * half + i;  // of k = 0; the others 32 apart
      uint8_t* ql = block.ql + 64 * half + i;
      ql[0] = static_cast<uint8_t>((q[0] & 0x0f) | (q[64] & 0x0f) << 4);
      ql[32] = static_cast<uint8_t>((q[32] & 0x0f) | (q[96] & 0x0f) << 4);
      block.qh[32 * half + i] = static_cast<uint8_t>(q[0] >> 4 | q[32] >> 4 << 2 |
                                                     q[64] >> 4 << 4 | q[96] >> 4 << 6);
    }
  }
  return block;
}

}  // namespace

void encode_q6_k(std::span<const float> weights, std::span<std::byte> out) {
  encode_blocks<BlockQ6_K>(weights, out, [](std::span<const float, 256> x) {
    std::array<float, 256> squares;
    for (size_t i = 0; i < squares.size(); ++i) squares[i] = x[i] * x[i];
    const ScaledGroups<Q6KSpec> groups = encode_scaled_groups<Q6KSpec>(x, squares);
    return pack(groups, scaled_codes<Q6KSpec>(x, groups));
  });
}

}  // namespace godwit::quant
