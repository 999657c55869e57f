// Random scales and minima for Q4_K and Q5_K, whose weights are d*s*q - dmin*m: with dmin = d *
// centre of the codes and m near s, a group's weights lie around zero. m differs from s by a few
// units, so that a kernel that confuses the two is found out. Host only.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "quant/k_scales.h"

namespace godwit::quant {

// s is uniform in 16..61 and m - s uniform in -2..2.
inline constexpr double kRandomKScaleMeanSquare = 38.5 * 38.5 + (46.0 * 46.0 - 1.0) / 12.0;
inline constexpr double kRandomKMinVariance = 2.0;

inline void fill_random_k_scales(RandomStream& random, uint8_t* packed) {
  KScaleMin groups[kKGroups];
  for (KScaleMin& group : groups) {
    group.scale = static_cast<uint8_t>(16 + random.below(46));
    group.min = static_cast<uint8_t>(group.scale + random.below(5) - 2);
  }
  pack_k_scales(groups, packed);
}

}  // namespace godwit::quant
