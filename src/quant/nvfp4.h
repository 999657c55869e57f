// NVFP4: 64 weights of 4 bits (FP4, E2M1) in 4 groups of 16, each group with an unsigned 8-bit
// float d (E4M3). weight = d / 2 * fp4_doubled_value(q). Exact in f32.
//
//   offset  bytes  content
//   0       4      byte g: d of group g, see ue4m3_to_f32_half()
//   4       32     byte 8 g + i (i = 0..7): bits 3..0 q of weight i of group g, bits 7..4 q of
//                  weight i + 8 of group g
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

// Half the value of an unsigned E4M3 float: bits 6..3 the exponent (bias 7), bits 2..0 the
// mantissa, bit 7 ignored. 0x7f, the NaN of the format, is 0, as in llama.cpp; 0xff is not.
[[nodiscard]] GODWIT_HOST_DEVICE inline float ue4m3_to_f32_half(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 0x0fu;
  const uint32_t mantissa = code & 7u;
  if (code == 0x7f) return 0.0f;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return bit_cast_hd<float>((exponent + 119) << 23 | mantissa << 20);
}

struct BlockNVFP4 {
  static constexpr TensorType kType = TensorType::kNVFP4;
  static constexpr int kWeights = 64;

  uint8_t d[4];
  uint8_t qs[32];
};
static_assert(kMatchesGeometry<BlockNVFP4>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockNVFP4& block, float* out) {
  for (int group = 0; group < 4; ++group) {
    decode_halves<8, fp4_doubled_value>(block.qs + ptrdiff_t{8} * group,
                                        ue4m3_to_f32_half(block.d[group]),
                                        out + ptrdiff_t{16} * group);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockNVFP4& out) {
  const double unit = std::sqrt(mean_square(kFp4Values));
  for (uint8_t& d : out.d) {
    const float scale = deviation / static_cast<float>(unit) * random_spread(random);
    d = random_scale_code(random, scale, 0x7e, ue4m3_to_f32_half);
  }
  fill_random(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
