// The mat-vec kernels of the CPU backend as data: one row per (type, ISA), best first, the generic
// one last. Dispatch, tests and benches are loops over this table; adding a row adds all three.
// The executor resolves a row per weight at load and calls through it; it knows no type by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backend/cpu/matvec_args.h"
#include "base/tensor_type.h"
#include "os/cpu_features.h"

namespace godwit::cpu {

// Results of `exact` kernels are bit-identical across ISAs, thread counts and numbers of tokens,
// as long as they are numbers (which NaN comes out is the machine's choice).
enum class Exactness : uint8_t { kExact, kBounded };

struct MatVecKernel {
  std::string_view name;  // "q4_k avx512vnni"
  TensorType type;
  Isa isa;
  ActivationKind activation;
  Exactness exactness;
  void (*run)(const MatVecArgs& args);
};

// How a type lies in memory after loading, the same for every ISA. `packed_row_bytes` counts a row
// of `cols` weights; a matrix has div_up(rows, kTileRows) * kTileRows packed rows, the missing ones
// 0.
struct Packing {
  TensorType type;
  size_t (*packed_row_bytes)(size_t cols);
  // Packs file rows [row_begin, row_end) (row_begin a multiple of kTileRows; row_end too, or the
  // last row) from `src`, which points at file row row_begin, to `dst`, the packed tile of
  // row_begin.
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

// The same in two planes of eight bits: the second holds what the first left over, rounded in the
// same way, so that x is known to one part in 127 * 254 of its block's largest value. To a kernel
// the planes of n tokens are 2 n tokens, t and n + t, whose y add up. A memory-bound mat-vec does
// not notice; eight bits alone move the logits of small models far enough to change their answers
// (docs/DECISIONS.md), so one plane is for who asks for it. kF32 always has one.
enum class Planes : uint8_t { kOne = 1, kTwo = 2 };
[[nodiscard]] constexpr size_t activation_planes(ActivationKind kind,
                                                 Planes planes = Planes::kTwo) {
  return kind == ActivationKind::kF32 ? 1 : static_cast<size_t>(planes);
}
// `layout` is that of activation_planes(kind, planes) * n_tokens tokens.
void quantize_planes(ActivationKind kind, const Activations& layout, const float* x,
                     size_t x_stride, size_t n_tokens, size_t cols, TokenRange tokens, Isa isa,
                     Planes planes = Planes::kTwo);

}  // namespace godwit::cpu
