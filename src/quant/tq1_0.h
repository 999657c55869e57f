// TQ1_0: 256 ternary weights, five to a byte, one scale. weight = d * (q - 1), q = 0..2.
// A byte b is a fraction b / 256 whose digits to the base 3 after the point are its codes: digit k
// is the integer part of 3 * frac(3^k * b / 256).
//
//   offset  bytes  content
//   0       32     byte i: digit k = 0..4 is q of weight 32 k + i
//   32      16     byte i: digit k = 0..4 is q of weight 160 + 16 k + i
//   48      4      byte i: digit k = 0..3 is q of weight 240 + 4 k + i
//   52      2      d, binary16
#pragma once

#include <cmath>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "base/random.h"
#include "base/tensor_type.h"
#include "quant/block.h"
#include "quant/random_fill.h"

namespace godwit::quant {

// Digit k = 0..4 of a byte, 0..2.
[[nodiscard]] GODWIT_HOST_DEVICE inline int ternary_digit(uint8_t byte, int k) {
  unsigned fraction = byte;
  for (int i = 0; i < k; ++i) fraction = (fraction * 3) & 0xff;
  return static_cast<int>((fraction * 3) >> 8);
}

struct BlockTQ1_0 {
  static constexpr TensorType kType = TensorType::kTQ1_0;
  static constexpr int kWeights = 256;

  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;
};
static_assert(kMatchesGeometry<BlockTQ1_0>);

GODWIT_HOST_DEVICE inline void decode_block(const BlockTQ1_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 160; ++i) {
    out[i] = d * static_cast<float>(ternary_digit(block.qs[i % 32], i / 32) - 1);
  }
  for (int i = 0; i < 80; ++i) {
    out[160 + i] = d * static_cast<float>(ternary_digit(block.qs[32 + i % 16], i / 16) - 1);
  }
  for (int i = 0; i < 16; ++i) {
    out[240 + i] = d * static_cast<float>(ternary_digit(block.qh[i % 4], i / 4) - 1);
  }
}

inline void random_block(RandomStream& random, float deviation, BlockTQ1_0& out) {
  // Digits of random bytes are 0, 1 or 2 nearly alike: mean square 2/3; the sign of d makes the
  // mean zero. Files hold only the 243 bytes that are a multiple of 1/243, rounded up.
  const float unit = deviation / std::sqrt(2.0f / 3.0f);
  out.d = f32_to_f16(unit * random_signed_spread(random));
  fill_random(random, out.qs, sizeof(out.qs));
  fill_random(random, out.qh, sizeof(out.qh));
}

}  // namespace godwit::quant
