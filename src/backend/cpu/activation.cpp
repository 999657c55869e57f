#include <algorithm>
#include <cstring>

#include "backend/cpu/activation_kernels.h"
#include "backend/cpu/kernel_table.h"
#include "base/bits.h"
#include "base/check.h"

namespace godwit::cpu {
namespace {

// Sizes of one token's row, in elements; every row begins on a cache line.
struct RowSizes {
  size_t q = 0;
  size_t scales = 0;
  size_t sums = 0;

  [[nodiscard]] size_t bytes() const { return q + scales * sizeof(float) + sums * sizeof(int32_t); }
};

constexpr size_t kLine = 64;
constexpr size_t kWordsPerLine = kLine / 4;

RowSizes row_sizes(ActivationKind kind, size_t cols) {
  switch (kind) {
    case ActivationKind::kF32:
      return {};
    case ActivationKind::kQ8Block32:
      return {round_up(cols, kLine), round_up(cols / 32, kWordsPerLine),
              round_up(cols / 32, kWordsPerLine)};
    case ActivationKind::kQ8Block256:
      return {round_up(cols, kLine), round_up(cols / 256, kWordsPerLine),
              round_up(cols / 256 * kSumWordsPerBlock256, kWordsPerLine)};
  }
  return {};
}

using QuantizeRow = void (*)(const float* x, size_t cols, const QuantizedRow& out);

QuantizeRow find_quantizer(ActivationKind kind, Isa isa) {
  const bool block32 = kind == ActivationKind::kQ8Block32;
  switch (isa) {
    case Isa::kGeneric:
      return block32 ? generic::quantize_block32 : generic::quantize_block256;
    case Isa::kAvx2:
      return block32 ? avx2::quantize_block32 : avx2::quantize_block256;
    case Isa::kAvx512Vnni:
    case Isa::kAvx512Bf16:
      return block32 ? avx512vnni::quantize_block32 : avx512vnni::quantize_block256;
  }
  return nullptr;
}

// Columns whose leftovers are held at a time: whole blocks of either kind.
constexpr size_t kPiece = 256;

QuantizedRow row_of(const Activations& layout, size_t t) {
  return {layout.q + t * layout.q_stride, layout.scales + t * layout.scale_stride,
          layout.sums + t * layout.sum_stride};
}

// The part of a row from column `c` on, a multiple of kPiece.
QuantizedRow from_column(const QuantizedRow& row, ActivationKind kind, size_t c) {
  if (kind == ActivationKind::kQ8Block32)
    return {row.q + c, row.scales + c / 32, row.sums + c / 32};
  return {row.q + c, row.scales + c / 256, row.sums + c / 256 * kSumWordsPerBlock256};
}

// rest = x - scale * q. Product and difference round separately, the same way on every machine.
void leftover(const float* x, const QuantizedRow& rounded, size_t block, size_t cols, float* rest) {
  for (size_t b = 0; b < cols / block; ++b) {
    const float scale = rounded.scales[b];
    for (size_t i = b * block; i < (b + 1) * block; ++i) {
      rest[i] = x[i] - scale * static_cast<float>(rounded.q[i]);
    }
  }
}

}  // namespace

size_t activation_bytes(ActivationKind kind, size_t n_tokens, size_t cols) {
  return n_tokens * row_sizes(kind, cols).bytes();
}

Activations layout_activations(ActivationKind kind, const float* x, size_t x_stride,
                               size_t n_tokens, size_t cols, std::span<std::byte> scratch) {
  Activations layout;
  if (kind == ActivationKind::kF32) {
    layout.f32 = x;
    layout.f32_stride = x_stride;
    return layout;
  }
  check(scratch.size() >= activation_bytes(kind, n_tokens, cols), "activation scratch too small");
  check(reinterpret_cast<uintptr_t>(scratch.data()) % kLine == 0, "activation scratch unaligned");
  const RowSizes sizes = row_sizes(kind, cols);
  void* base = scratch.data();
  void* scales = scratch.data() + n_tokens * sizes.q;
  void* sums = scratch.data() + n_tokens * (sizes.q + sizes.scales * sizeof(float));
  layout.q = static_cast<int8_t*>(base);
  layout.scales = static_cast<float*>(scales);
  layout.sums = static_cast<int32_t*>(sums);
  layout.q_stride = sizes.q;
  layout.scale_stride = sizes.scales;
  layout.sum_stride = sizes.sums;
  return layout;
}

void quantize_activations(ActivationKind kind, const Activations& layout, const float* x,
                          size_t x_stride, size_t cols, TokenRange tokens, Isa isa) {
  if (kind == ActivationKind::kF32) return;
  check(cols % activation_block(kind) == 0, "columns not whole blocks");
  const QuantizeRow quantize = find_quantizer(kind, isa);
  for (size_t t = tokens.begin; t < tokens.end; ++t) {
    quantize(x + t * x_stride, cols, row_of(layout, t));
  }
}

void quantize_planes(ActivationKind kind, const Activations& layout, const float* x,
                     size_t x_stride, size_t n_tokens, size_t cols, TokenRange tokens, Isa isa,
                     Planes planes) {
  quantize_activations(kind, layout, x, x_stride, cols, tokens, isa);
  if (activation_planes(kind, planes) == 1) return;
  const size_t block = activation_block(kind);
  const QuantizeRow quantize = find_quantizer(kind, isa);
  alignas(kLine) float rest[kPiece];
  for (size_t t = tokens.begin; t < tokens.end; ++t) {
    const QuantizedRow first = row_of(layout, t);
    const QuantizedRow second = row_of(layout, n_tokens + t);
    for (size_t c = 0; c < cols; c += kPiece) {
      const size_t n = std::min(kPiece, cols - c);
      leftover(x + t * x_stride + c, from_column(first, kind, c), block, n, rest);
      quantize(rest, n, from_column(second, kind, c));
    }
  }
}

}  // namespace godwit::cpu
