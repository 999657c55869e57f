// The quantisers of activations that kernel_table.h's quantize_activations() chooses from: one
// token each. Plain declarations: included by files compiled for one instruction set.
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

// Below this a block counts as zero: 127 / max|x| must not overflow.
inline constexpr float kSmallestMagnitude = 0x1p-100f;

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

}  // namespace godwit::cpu
