// Computes: per block, scale = max|x| / 127 and q = round_to_even(x * (127 / max|x|)), all three
//   operations rounded to f32; sums of q as Activations::sums says.
// Preconditions: cols is a multiple of the block; x any alignment.
// Arithmetic: exact, the same bits on every instruction set. Not finite or tiny: Activations.
// Reference: this file.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/matvec_args.h"

namespace godwit::cpu::generic {
namespace {

template <size_t kBlock>
void quantize_block(const float* x, int8_t* q, float* scale) {
  uint32_t largest = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  const ActivationScale s = activation_scale(largest);
  *scale = s.scale;
  if (s.inverse == 0.0f) {
    std::memset(q, 0, kBlock);
    return;
  }
  for (size_t i = 0; i < kBlock; ++i) {
    q[i] = static_cast<int8_t>(std::nearbyint(x[i] * s.inverse));
  }
}

}  // namespace

void quantize_block32(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 32; ++b) {
    const int8_t* q = out.q + 32 * b;
    quantize_block<32>(x + 32 * b, out.q + 32 * b, out.scales + b);
    int32_t sum = 0;
    for (size_t i = 0; i < 32; ++i) sum += q[i];
    out.sums[b] = sum;
  }
}

void quantize_block256(const float* x, size_t cols, const QuantizedRow& out) {
  for (size_t b = 0; b < cols / 256; ++b) {
    const int8_t* q = out.q + 256 * b;
    quantize_block<256>(x + 256 * b, out.q + 256 * b, out.scales + b);
    int32_t fours[64];
    for (size_t i = 0; i < 64; ++i)
      fours[i] = q[4 * i] + q[4 * i + 1] + q[4 * i + 2] + q[4 * i + 3];
    store_sum_words(fours, out.sums + kSumWordsPerBlock256 * b);
  }
}

}  // namespace godwit::cpu::generic
