// F16: one IEEE binary16 weight, little endian. A "block" is one weight.
//
//   offset  bytes  content
//   0       2      the weight
#pragma once

#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"

namespace godwit::quant {

struct BlockF16 {
  static constexpr TensorType kType = TensorType::kF16;
  static constexpr int kWeights = 1;

  uint16_t bits;
};
static_assert(kMatchesGeometry<BlockF16>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockF16& block, float* out) {
  out[0] = f16_to_f32(block.bits);
}

inline void random_block(RandomStream& random, float deviation, BlockF16& out) {
  out.bits = f32_to_f16(deviation * static_cast<float>(random.bell()));
}

}  // namespace godwit::quant
