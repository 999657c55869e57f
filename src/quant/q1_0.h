// Q1_0: 128 weights of 1 bit, one scale. weight[i] = d where bit i is set, else -d.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       16     byte i / 8, bit i mod 8: the bit of weight i
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockQ1_0 {
  static constexpr TensorType kType = TensorType::kQ1_0;
  static constexpr int kWeights = 128;

  uint16_t d;
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockQ1_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ1_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (const uint8_t byte : block.qs) {
    for (int bit = 0; bit < 8; ++bit) *out++ = ((byte >> bit) & 1) != 0 ? d : -d;
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ1_0& out) {
  out.d = f32_to_f16(deviation * random_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
