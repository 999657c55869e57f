// F32: one IEEE binary32 weight, little endian. A "block" is one weight.
//
//   offset  bytes  content
//   0       4      the weight
#pragma once

#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"

namespace godwit::quant {

struct BlockF32 {
  static constexpr TensorType kType = TensorType::kF32;
  static constexpr int kWeights = 1;

  float value;
};
static_assert(kMatchesGeometry<BlockF32>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockF32& block, float* out) {
  // A copy of bytes: a load and store as float may make a signalling NaN quiet.
  memcpy(out, &block.value, sizeof(float));
}

inline void random_block(RandomStream& random, float deviation, BlockF32& out) {
  out.value = deviation * static_cast<float>(random.bell());
}

}  // namespace godwit::quant
