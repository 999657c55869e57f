// What a mat-vec kernel is given: packed weights, prepared activations, a range of rows, y.
// Plain data only: the files compiled for one instruction set include this and no more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::cpu {

// What a kernel reads as x.
enum class ActivationKind : uint8_t {
  kF32,         // floats as they are
  kQ8Block32,   // int8 with one f32 scale per 32 values
  kQ8Block256,  // int8 with one f32 scale per 256 values
};

// Values of an activation that share a scale; 0: nothing is rounded.
[[nodiscard]] constexpr size_t activation_block(ActivationKind kind) {
  if (kind == ActivationKind::kF32) return 0;
  return kind == ActivationKind::kQ8Block32 ? 32 : 256;
}

// Words of sums per 256 values of kQ8Block256, see Activations::sums.
inline constexpr size_t kSumWordsPerBlock256 = 12;

// Activations of n tokens, row-major, filled by quantize_activations(). All strides in elements.
// A block with a value that is not finite has scale NaN and q 0, so that y shows it; one whose
// largest magnitude is below 2^-100 has scale 0 and q 0.
struct Activations {
  const float* f32 = nullptr;  // [n_tokens, cols], for kF32
  int8_t* q = nullptr;         // [n_tokens, cols] in -127..127, 64-byte aligned rows
  float* scales = nullptr;     // [n_tokens, cols / block]
  // kQ8Block32: [n_tokens, cols / 32], the sum of q over each 32 values.
  // kQ8Block256: [n_tokens, cols / 256, 12] words of two int16, the first in the low half:
  //   word g < 4:  sums over the 32 values at 64 g and at 64 g + 32
  //   word 4 + c:  sums over the 16 values at 16 c and at 128 + 16 c, c < 8
  int32_t* sums = nullptr;
  size_t f32_stride = 0;
  size_t q_stride = 0;
  size_t scale_stride = 0;
  size_t sum_stride = 0;
};

// y[t, r] = sum over c of W[r, c] * x[t, c], for rows [row_begin, row_end) and all tokens.
struct MatVecArgs {
  const std::byte* weights = nullptr;  // the packed matrix from its first row
  size_t rows = 0;                     // of the whole matrix
  size_t cols = 0;
  size_t row_begin = 0;  // multiple of kTileRows
  size_t row_end = 0;    // multiple of kTileRows, or `rows`
  Activations x;
  size_t n_tokens = 1;
  float* y = nullptr;  // [n_tokens, y_stride]
  size_t y_stride = 0;
};

// Rows of one packed tile: one row per dword lane of a 512-bit register.
inline constexpr size_t kTileRows = 16;

// How far ahead of the arithmetic weights are asked for: into the first-level cache, and before
// that into the second, where the processor gains by it (kernel_table.cpp says which does).
struct PrefetchAhead {
  size_t near_bytes = 0;
  size_t far_bytes = 0;  // 0: not
};
extern const PrefetchAhead prefetch_ahead;

}  // namespace godwit::cpu
