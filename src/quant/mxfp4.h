// MXFP4: 32 weights of 4 bits (FP4, E2M1), one scale of 8 bits that is a power of two.
// weight[i] = d * fp4_doubled_value(q[i]) with d = 2^(e - 128), half the E8M0 value of e. The code
// 255, a NaN in the specification of E8M0, is a power of two like the others, as in llama.cpp.
//
//   offset  bytes  content
//   0       1      e
//   1       16     byte i: bits 3..0 q[i], bits 7..4 q[i + 16]
#pragma once

#include <cmath>
#include <cstdint>

#include "base/bits.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"
#include "quant/value_tables.h"

namespace godwit::quant {

// 2^(e - 128): half the value of an E8M0 scale. Subnormal for e = 0 and 1.
[[nodiscard]] GODWIT_HOST_DEVICE inline float e8m0_to_f32_half(uint8_t e) {
  return bit_cast_hd<float>(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
}

struct BlockMXFP4 {
  static constexpr TensorType kType = TensorType::kMXFP4;
  static constexpr int kWeights = 32;

  uint8_t e;
  uint8_t qs[16];
};
static_assert(kMatchesGeometry<BlockMXFP4>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockMXFP4& block, float* out) {
  decode_halves<16, fp4_doubled_value>(block.qs, e8m0_to_f32_half(block.e), out);
}

inline void random_block(RandomStream& random, float deviation, BlockMXFP4& out) {
  const double unit = std::sqrt(mean_square(kFp4Values));
  const float scale = deviation / static_cast<float>(unit) * random_spread(random);
  out.e = random_scale_code(random, scale, 254, e8m0_to_f32_half);
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
