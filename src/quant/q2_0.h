// Q2_0: 64 weights of 2 bits, one scale. weight[i] = d * (q[i] - 1).
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       16     byte i / 4, bits 2(i mod 4)+1..2(i mod 4): q[i]
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"
#include "quant/ternary_random.h"

namespace godwit::quant {

struct BlockQ2_0 {
  static constexpr TensorType kType = TensorType::kQ2_0;
  static constexpr int kWeights = 64;

  uint16_t d;
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockQ2_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ2_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (const uint8_t byte : block.qs) {
    for (int k = 0; k < 4; ++k) *out++ = d * static_cast<float>(((byte >> (2 * k)) & 3) - 1);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ2_0& out) {
  const double unit = std::sqrt(kRandomTernaryMeanSquare);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random_ternary(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
