// TQ2_0: 256 weights of 2 bits, one scale: ternary weights, though a code may also be 3.
// weight[i] = d * (q[i] - 1).
//
//   offset  bytes  content; weight 128 c + 32 k + i with c = 0..1, k = 0..3, i = 0..31
//   0       64     byte 32 c + i: bits 2k+1..2k are q
//   64      2      d, binary16
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/codes.h"
#include "quant/random_fill.h"
#include "quant/ternary_random.h"

namespace godwit::quant {

struct BlockTQ2_0 {
  static constexpr TensorType kType = TensorType::kTQ2_0;
  static constexpr int kWeights = 256;

  uint8_t qs[64];
  uint16_t d;
};
static_assert(kMatchesGeometry<BlockTQ2_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockTQ2_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int plane = 0; plane < 8; ++plane) {
    float* plane_out = out + ptrdiff_t{32} * plane;
    for (int i = 0; i < 32; ++i) {
      plane_out[i] = d * static_cast<float>(pair_of_plane(block.qs, plane, i) - 1);
    }
  }
}

inline void random_block(RandomStream& random, float deviation, BlockTQ2_0& out) {
  const double unit = std::sqrt(kRandomTernaryMeanSquare);
  out.d = f32_to_f16(deviation / static_cast<float>(unit) * random_spread(random));
  fill_random_ternary(random, out.qs, sizeof(out.qs));
}

}  // namespace godwit::quant
