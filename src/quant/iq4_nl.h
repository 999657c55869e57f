// IQ4_NL: 32 weights of 4 bits, one scale. weight[i] = d * iq4_value(q[i]), see value_tables.h.
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
#include "quant/value_tables.h"

namespace godwit::quant {

struct BlockIQ4_NL {
  static constexpr TensorType kType = TensorType::kIQ4_NL;
  static constexpr int kWeights = 32;

  uint16_t d;
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockIQ4_NL>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockIQ4_NL& block, float* out) {
  decode_halves<16, iq4_value>(block.qs, f16_to_f32(block.d), out);
}

inline void random_block(RandomStream& random, float deviation, BlockIQ4_NL& out) {
  // The sign of d makes the mean zero.
  const double unit = std::sqrt(mean_square(kIq4Values));
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_signed_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
