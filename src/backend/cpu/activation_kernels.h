// The quantisers of activations that quantize_activations() chooses from, one token at a time, and
// what they share. Included by files compiled for one instruction set: what is defined here is in
// an unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

// One token of Activations.
struct QuantizedRow {
  int8_t* q;      // [cols]
  float* scales;  // [cols / block]
  int32_t* sums;  // as Activations::sums
};

namespace generic {
void quantize_block32(const float* x, size_t cols, const QuantizedRow& out);
void quantize_block256(const float* x, size_t cols, const QuantizedRow& out);
}  // namespace generic
namespace avx2 {
void quantize_block32(const float* x, size_t cols, const QuantizedRow& out);
void quantize_block256(const float* x, size_t cols, const QuantizedRow& out);
}  // namespace avx2
namespace avx512vnni {
void quantize_block32(const float* x, size_t cols, const QuantizedRow& out);
void quantize_block256(const float* x, size_t cols, const QuantizedRow& out);
}  // namespace avx512vnni

namespace {

struct ActivationScale {
  float scale;
  float inverse;  // 0 where all q are to be 0
};

// From the largest magnitude of a block, as bits: magnitudes compare as their bits do, so NaN and
// infinity come out on top.
[[maybe_unused]] inline ActivationScale activation_scale(uint32_t largest_bits) {
  constexpr uint32_t kInfinityBits = 0x7f800000u;
  // Below this a block counts as zero: 127 / largest must not overflow.
  constexpr float kSmallest = 0x1p-100f;
  if (largest_bits >= kInfinityBits) return {__builtin_nanf(""), 0.0f};
  float largest = 0;
  __builtin_memcpy(&largest, &largest_bits, sizeof(largest));
  if (largest < kSmallest) return {0.0f, 0.0f};
  return {largest / 127.0f, 127.0f / largest};
}

// The twelve words of a block of 256 (Activations::sums) from the sums of each four values.
[[maybe_unused]] inline void store_sum_words(const int32_t* fours, int32_t* words) {
  int32_t sums16[16];
  for (size_t i = 0; i < 16; ++i) {
    sums16[i] = (fours[4 * i] + fours[4 * i + 1]) + (fours[4 * i + 2] + fours[4 * i + 3]);
  }
  const auto pair = [](int32_t first, int32_t second) {
    const uint32_t word = (static_cast<uint32_t>(first) & 0xffffu) | static_cast<uint32_t>(second)
                                                                         << 16;
    return static_cast<int32_t>(word);
  };
  for (size_t g = 0; g < 4; ++g) {
    words[g] = pair(sums16[4 * g] + sums16[4 * g + 1], sums16[4 * g + 2] + sums16[4 * g + 3]);
  }
  for (size_t c = 0; c < 8; ++c) words[4 + c] = pair(sums16[c], sums16[8 + c]);
}

}  // namespace
}  // namespace godwit::cpu
