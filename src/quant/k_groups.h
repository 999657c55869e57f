// How Q4_K and Q5_K, which differ only in where the bits of a code are, become weights: eight
// groups of 32, weight = d * s * q - dmin * m with the scale s and the minimum m of the group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "quant/k_scales.h"

namespace godwit::quant {

// The block's factors (d and dmin, binary16) and its packed scales.
struct KFactors {
  uint16_t d;
  uint16_t dmin;
  const uint8_t* scales;  // [kKScaleBytes]
};

// The 256 weights of a block, the codes of which are code_of(group, i) with i = 0..31.
template <class CodeOf>
GODWIT_HOST_DEVICE inline void decode_k_groups(const KFactors& factors, CodeOf code_of,
                                               float* out) {
  const float d = f16_to_f32(factors.d);
  const float dmin = f16_to_f32(factors.dmin);
  for (int group = 0; group < kKGroups; ++group) {
    const KScaleMin k = unpack_k_scale(factors.scales, group);
    const float scale = d * static_cast<float>(k.scale);
    const float min = dmin * static_cast<float>(k.min);
    float* group_out = out + ptrdiff_t{kKGroupWeights} * group;
    for (int i = 0; i < kKGroupWeights; ++i) {
      group_out[i] = scale * static_cast<float>(code_of(group, i)) - min;
    }
  }
}

}  // namespace godwit::quant
