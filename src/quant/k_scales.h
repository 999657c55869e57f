// The 12 bytes in which Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minima, one of each
// per group of 32 weights. The one place that knows their bit positions: decoders, packers and
// kernels call it. With s0..s7 and m0..m7, and [hi:lo] for bits of a value:
//
//   byte j     (j = 0..3)   bits 5..0  s_j          bits 7..6  s_(j+4) [5:4]
//   byte 4 + j (j = 0..3)   bits 5..0  m_j          bits 7..6  m_(j+4) [5:4]
//   byte 8 + j (j = 0..3)   bits 3..0  s_(j+4)[3:0] bits 7..4  m_(j+4) [3:0]
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace godwit::quant {

inline constexpr int kKScaleBytes = 12;
inline constexpr int kKGroups = 8;         // groups in a block of 256 weights
inline constexpr int kKGroupWeights = 32;  // weights in a group

struct KScaleMin {
  uint8_t scale = 0;  // 0..63, in units of the block's d
  uint8_t min = 0;    // 0..63, in units of the block's dmin
};

// The scale and minimum of group 0..7 from the 12 packed bytes.
[[nodiscard]] GODWIT_HOST_DEVICE inline KScaleMin unpack_k_scale(const uint8_t* packed, int group) {
  if (group < 4) {
    return {static_cast<uint8_t>(packed[group] & 0x3f),
            static_cast<uint8_t>(packed[group + 4] & 0x3f)};
  }
  const int j = group - 4;
  return {static_cast<uint8_t>((packed[8 + j] & 0x0f) | ((packed[j] >> 2) & 0x30)),
          static_cast<uint8_t>((packed[8 + j] >> 4) | ((packed[4 + j] >> 2) & 0x30))};
}

// The inverse: groups[8] into packed[12]. All values are at most 63.
GODWIT_HOST_DEVICE inline void pack_k_scales(const KScaleMin* groups, uint8_t* packed) {
  for (int j = 0; j < 4; ++j) {
    const KScaleMin low = groups[j];
    const KScaleMin high = groups[j + 4];
    packed[j] = static_cast<uint8_t>(low.scale | (high.scale >> 4) << 6);
    packed[4 + j] = static_cast<uint8_t>(low.min | (high.min >> 4) << 6);
    packed[8 + j] = static_cast<uint8_t>((high.scale & 0x0f) | (high.min & 0x0f) << 4);
  }
}

}  // namespace godwit::quant
