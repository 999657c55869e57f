// Computes: y[t, r] = sum over c of W[r, c] * x[t, c], W as f32, f16 or bf16, x as f32.
// Shapes and types: weights in columns of 16 rows, see tile_layout.h; x kF32; any cols.
// Preconditions: those of MatVecArgs; the caller guarantees them.
// Bytes moved: the columns once per token. Work split: by the caller, in whole tiles.
// Arithmetic: exact. W widens exactly; four partial sums a0..a3, one per column mod 4, in column
//   order, a = fma(W[r, c], x[t, c], a); y = (a0 + a1) + (a2 + a3).
// Reference: this file defines the result for the other instruction sets.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matvec_kernels.h"
#include "backend/cpu/tile_layout.h"
#include "base/half.h"

namespace godwit::cpu::generic {
namespace {

struct F32 {
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF32; }
  static float weight(const std::byte* tile, size_t row, size_t column) {
    float value = 0;
    std::memcpy(&value, tile + column * kTileBytesF32 + 4 * row, 4);
    return value;
  }
};

struct F16 {
  static size_t tile_bytes(size_t cols) { return cols * kTileBytesF16; }
  static float weight(const std::byte* tile, size_t row, size_t column) {
    uint16_t half = 0;
    std::memcpy(&half, tile + column * kTileBytesF16 + 2 * row, 2);
    return f16_to_f32(half);
  }
};

struct BF16 {
  static size_t tile_bytes(size_t cols) { return (cols + 1) / 2 * kTileBytesBF16Pair; }
  static float weight(const std::byte* tile, size_t row, size_t column) {
    uint16_t half = 0;
    const size_t offset = column / 2 * kTileBytesBF16Pair + 4 * row + 2 * (column % 2);
    std::memcpy(&half, tile + offset, 2);
    return bf16_to_f32(half);
  }
};

template <class Type>
void run(const MatVecArgs& args) {
  for (size_t row = args.row_begin; row < args.row_end; row += kTileRows) {
    const std::byte* tile = args.weights + row / kTileRows * Type::tile_bytes(args.cols);
    const size_t present = std::min(kTileRows, args.row_end - row);
    for (size_t t = 0; t < args.n_tokens; ++t) {
      const float* x = args.x.f32 + t * args.x.f32_stride;
      float partial[4][kTileRows] = {};
      for (size_t c = 0; c < args.cols; ++c) {
        float* sums = partial[c % 4];
        for (size_t r = 0; r < kTileRows; ++r) {
          sums[r] = std::fma(Type::weight(tile, r, c), x[c], sums[r]);
        }
      }
      float* y = args.y + t * args.y_stride + row;
      for (size_t r = 0; r < present; ++r) {
        y[r] = (partial[0][r] + partial[1][r]) + (partial[2][r] + partial[3][r]);
      }
    }
  }
}

}  // namespace

void matvec_f32(const MatVecArgs& args) { run<F32>(args); }
void matvec_f16(const MatVecArgs& args) { run<F16>(args); }
void matvec_bf16(const MatVecArgs& args) { run<BF16>(args); }

}  // namespace godwit::cpu::generic
