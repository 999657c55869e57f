// Q8_0: 32 weights of 8 bits, one scale. weight[i] = q[i] * d. Quantisers write -127..127, but a
// file may hold -128 and decodes it.
//
//   offset  bytes  content
//   0       2      d, binary16
//   2       32     q[i], two's complement
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"

namespace godwit::quant {

struct BlockQ8_0 {
  static constexpr TensorType kType = TensorType::kQ8_0;
  static constexpr int kWeights = 32;

  uint16_t d;
  int8_t qs[32];
};
static_assert(kMatchesGeometry<BlockQ8_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

inline void random_block(RandomStream& random, float deviation, BlockQ8_0& out) {
  // Codes are uniform in -128..127: mean square 5461.5; the sign of d makes the mean zero.
  const float unit = deviation / std::sqrt(5461.5f);
  out.d = f32_to_f16(unit * random_signed_spread(random));
  uint8_t codes[sizeof(out.qs)];
  fill_random(random, codes, sizeof(codes));
  std::memcpy(out.qs, codes, sizeof(codes));
}

}  // namespace godwit::quant
