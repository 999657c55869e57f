// Q5_0: 32 weights of 5 bits around 16, one scale. weight[i] = d * (q[i] - 16).
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       4      little-endian word: bit i is q[i][4]
//   6       16     byte i: bits 3..0 q[i][3:0], bits 7..4 q[i + 16][3:0]
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

struct BlockQ5_0 {
  static constexpr TensorType kType = TensorType::kQ5_0;
  static constexpr int kWeights = 32;

  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockQ5_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    const int high_low = (block.qh[i / 8] >> (i % 8)) & 1;
    const int high_up = (block.qh[2 + i / 8] >> (i % 8)) & 1;
    out[i] = d * static_cast<float>(((block.qs[i] & 0x0f) | high_low << 4) - 16);
    out[i + 16] = d * static_cast<float>(((block.qs[i] >> 4) | high_up << 4) - 16);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ5_0& out) {
  // Codes are uniform in -16..15: mean square 85.5; the sign of d makes the mean zero.
  const float unit = deviation / std::sqrt(85.5f);
  out.d = f32_to_f16(unit * random_signed_spread(random));
  fill_random(random, out.qh, sizeof(out.qh));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
