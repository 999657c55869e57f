// Computes: per block, scale = max|x| / 127 and q = round_to_even(x * (127 / max|x|)), both
//   operations rounded to f32; sums of q as Activations::sums says.
// Preconditions: cols is a multiple of the block; x any alignment.
// Arithmetic: exact, the same bits on every instruction set. Not finite or tiny: Activations.
// Reference: this file.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/matvec_args.h"

namespace godwit::cpu::generic {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000u;

struct BlockScale {
  float scale;
  float inverse;  // 0 where all q are to be 0
};

// Magnitudes compare as their bits do, so NaN and infinity come out on top.
template <size_t kBlock>
BlockScale block_scale(const float* x) {
  uint32_t largest = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  if (largest >= kInfinityBits) return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  const float max = std::bit_cast<float>(largest);
  if (max < kSmallestMagnitude) return {0.0f, 0.0f};
  return {max / 127.0f, 127.0f / max};
}

template <size_t kBlock>
void quantize_block(const float* x, int8_t* q, float* scale) {
  const BlockScale s = block_scale<kBlock>(x);
  *scale = s.scale;
  if (s.inverse == 0.0f) {
    std::memset(q, 0, kBlock);
    return;
  }
  for (size_t i = 0; i < kBlock; ++i) {
    q[i] = static_cast<int8_t>(std::nearbyint(x[i] * s.inverse));
  }
}

int sum_of(const int8_t* q, size_t n) {
  int sum = 0;
  for (size_t i = 0; i < n; ++i) sum += q[i];
  return sum;
}

int32_t pair_word(int first, int second) {
  const int16_t pair[2] = {static_cast<int16_t>(first), static_cast<int16_t>(second)};
  return std::bit_cast<int32_t>(pair);
}

}  // namespace

void quantize_block32(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 32; ++b) {
    quantize_block<32>(x + 32 * b, out.q + 32 * b, out.scales + b);
    out.sums[b] = sum_of(out.q + 32 * b, 32);
  }
}

void quantize_block256(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 256; ++b) {
    int8_t* q = out.q + 256 * b;
    quantize_block<256>(x + 256 * b, q, out.scales + b);
    int32_t* words = out.sums + kSumWordsPerBlock256 * b;
    for (size_t g = 0; g < 4; ++g) {
      words[g] = pair_word(sum_of(q + 64 * g, 32), sum_of(q + 64 * g + 32, 32));
    }
    for (size_t c = 0; c < 8; ++c) {
      words[4 + c] = pair_word(sum_of(q + 16 * c, 16), sum_of(q + 128 + 16 * c, 16));
    }
  }
}

}  // namespace godwit::cpu::generic
