// The mat-vec kernels of the CPU backend as data: one row per (type, ISA), best first, the generic
// one last. Dispatch, tests and benches are loops over this table; adding a row adds all three.
// The executor resolves a row per weight at load and calls through it; it knows no type by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/tensor_type.h"
#include "os/cpu_features.h"

namespace godwit::cpu {

// What a kernel reads as x.
enum class ActivationKind : uint8_t {
  kF32,        // floats as they are
  kQ8Block32,  // int8 with one f32 scale per 32 values
  kQ8Block256, // int8 with one f32 scale per 256 values
};

// Results of `exact` kernels are bit-identical across ISAs, thread counts and numbers of tokens.
enum class Exactness : uint8_t { kExact, kBounded };

// Activations of n tokens, row-major, filled by quantize_activations(). All strides in elements.
struct Activations {
  const float* f32 = nullptr;      // [n_tokens, cols], for kF32
  int8_t* q = nullptr;       // [n_tokens, cols], 64-byte aligned, stride = cols rounded to 64
  float* scales = nullptr;   // [n_tokens, cols / block], stride = scale_stride
  int32_t* sums = nullptr;   // [n_tokens, cols / 32], sum of q over each 32, stride = sum_stride
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
  size_t row_begin = 0;                // multiple of kTileRows
  size_t row_end = 0;                  // multiple of kTileRows, or `rows`
  Activations x;
  size_t n_tokens = 1;
  float* y = nullptr;                  // [n_tokens, y_stride]
  size_t y_stride = 0;
};

// Rows of one packed tile: one row per dword lane of a 512-bit register.
inline constexpr size_t kTileRows = 16;

struct MatVecKernel {
  std::string_view name;  // "q4_k avx512vnni"
  TensorType type;
  Isa isa;
  ActivationKind activation;
  Exactness exactness;
  void (*run)(const MatVecArgs& args);
};

// How a type lies in memory after loading, the same for every ISA. `packed_row_bytes` counts a row
// of `cols` weights; a matrix has div_up(rows, kTileRows) * kTileRows packed rows, the missing ones 0.
struct Packing {
  TensorType type;
  size_t (*packed_row_bytes)(size_t cols);
  // Packs file rows [row_begin, row_end) (row_begin a multiple of kTileRows; row_end too, or the
  // last row) from `src`, which points at file row row_begin, to `dst`, the packed tile of row_begin.
  void (*pack)(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst);
};

[[nodiscard]] std::span<const MatVecKernel> matvec_kernels();
[[nodiscard]] const Packing* find_packing(TensorType type);
// Best kernel for the type that `isa` can run; nullptr when the type has none at all.
[[nodiscard]] const MatVecKernel* find_matvec_kernel(TensorType type, Isa isa);

// Activations of n_tokens x cols laid out in `scratch` (activation_bytes() of them, 64-byte
// aligned), and their filling for tokens [token_begin, token_end), so that threads can share the
// work. cols is a multiple of 32 (of 256 for kQ8Block256). Rounding is to nearest even at scale
// max|x| / 127 over the block; identical on every ISA. kF32 copies nothing: f32 points at x.
[[nodiscard]] size_t activation_bytes(ActivationKind kind, size_t n_tokens, size_t cols);
[[nodiscard]] Activations layout_activations(ActivationKind kind, const float* x, size_t x_stride,
                                             size_t n_tokens, size_t cols,
                                             std::span<std::byte> scratch);
struct TokenRange {
  size_t begin = 0;
  size_t end = 0;
};
void quantize_activations(ActivationKind kind, const Activations& layout, const float* x,
                          size_t x_stride, size_t cols, TokenRange tokens, Isa isa);

}  // namespace godwit::cpu
