// Q4_0: 32 weights of 4 bits around 8, one scale. weight[i] = d * (q[i] - 8).
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       16     byte i: bits 3..0 q[i], bits 7..4 q[i + 16]
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

struct BlockQ4_0 {
  static constexpr TensorType kType = TensorType::kQ4_0;
  static constexpr int kWeights = 32;

  uint16_t d;
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockQ4_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 0x0f) - 8);
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockQ4_0& out) {
  // Codes are uniform in -8..7: mean square 21.5; the sign of d makes the mean zero.
  const float unit = deviation / std::sqrt(21.5f);
  out.d = f32_to_f16(unit * random_signed_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
