// Q5_1: 32 weights of 5 bits, a scale and an offset. weight[i] = d * q[i] + m. The product is
// exact in f32 (11 + 5 bits), so an fma gives the same bits.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       2      m, binary16
//   4       4      little-endian word: bit i is q[i][4]
//   8       16     byte i: bits 3..0 q[i][3:0], bits 7..4 q[i + 16][3:0]
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockQ5_1 {
  static constexpr TensorType kType = TensorType::kQ5_1;
  static constexpr int kWeights = 32;

  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockQ5_1>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    const int high_low = (block.qh[i / 8] >> (i % 8)) & 1;
    const int high_up = (block.qh[2 + i / 8] >> (i % 8)) & 1;
    out[i] = d * static_cast<float>((block.qs[i] & 0x0f) | high_low << 4) + m;
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) | high_up << 4) + m;
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ5_1& out) {
  // Codes are uniform in 0..31: centre 15.5, variance 85.25.
  const float unit = deviation / std::sqrt(85.25f);
  out.d = f32_to_f16(unit * random_spread(random));
  out.m = f32_to_f16(-15.5f * f16_to_f32(out.d));
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
