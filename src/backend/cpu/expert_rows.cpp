#include "backend/cpu/expert_rows.h"

#include <algorithm>

#include "base/check.h"

namespace godwit::cpu {
namespace {

// What one block of columns brings beside its numbers.
struct BlockWords {
  size_t cols = 0;
  size_t sums = 0;
};

BlockWords block_words(ActivationKind kind) {
  return {.cols = activation_block(kind),
          .sums = kind == ActivationKind::kQ8Block32 ? 1 : kSumWordsPerBlock256};
}

}  // namespace

ExpertRows::ExpertRows(const RoutingRows& routing, const Area& area)
    : begins_(area.begins), rows_(area.rows.first(routing.n_rows * routing.n_used)) {
  const size_t n_experts = area.begins.size() - 1;
  const auto id_of = [&](size_t row, size_t slot) {
    const auto id = static_cast<size_t>(routing.ids[row * routing.stride + slot]);
    check(id < n_experts, "an expert that does not exist");
    return id;
  };
  std::ranges::fill(area.begins, 0u);
  for (size_t row = 0; row < routing.n_rows; ++row) {
    for (size_t slot = 0; slot < routing.n_used; ++slot) ++area.begins[id_of(row, slot)];
  }
  // Counts become ends; filling from the last row down turns each into its group's beginning.
  uint32_t end = 0;
  for (uint32_t& begin : area.begins) begin = end += begin;
  for (size_t row = routing.n_rows; row-- > 0;) {
    for (size_t slot = routing.n_used; slot-- > 0;) {
      area.rows[--area.begins[id_of(row, slot)]] = {.row = static_cast<uint32_t>(row),
                                                    .slot = static_cast<uint32_t>(slot)};
    }
  }
}

Activations gather_activations(ActivationKind kind, Planes planes, const Activations& from,
                               size_t n_tokens, std::span<const ExpertRow> rows,
                               const SlotColumns& columns, std::span<std::byte> scratch) {
  check(scratch.size() >= gathered_bytes(kind, rows.size(), columns.n), "gather scratch too small");
  auto* const floats = reinterpret_cast<float*>(scratch.data());
  const size_t n_planes = activation_planes(kind, planes);
  const Activations to =
      layout_activations(kind, floats, columns.n, n_planes * rows.size(), columns.n, scratch);
  if (kind == ActivationKind::kF32) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* const row = from.f32 + rows[i].row * from.f32_stride;
      std::copy_n(row + rows[i].slot * columns.stride, columns.n, floats + i * columns.n);
    }
    return to;
  }
  const BlockWords block = block_words(kind);
  const size_t n_blocks = columns.n / block.cols;
  for (size_t plane = 0; plane < n_planes; ++plane) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t t = plane * n_tokens + rows[i].row;
      const size_t u = plane * rows.size() + i;
      const size_t column = rows[i].slot * columns.stride;
      const size_t first = column / block.cols;
      std::copy_n(from.q + t * from.q_stride + column, columns.n, to.q + u * to.q_stride);
      std::copy_n(from.scales + t * from.scale_stride + first, n_blocks,
                  to.scales + u * to.scale_stride);
      std::copy_n(from.sums + t * from.sum_stride + first * block.sums, n_blocks * block.sums,
                  to.sums + u * to.sum_stride);
    }
  }
  return to;
}

size_t gathered_bytes(ActivationKind kind, size_t n_rows, size_t n_cols) {
  if (kind == ActivationKind::kF32) return n_rows * n_cols * sizeof(float);
  return activation_bytes(kind, activation_planes(kind) * n_rows, n_cols);
}

}  // namespace godwit::cpu
