// The rows of a call by the expert they chose, so that an expert's weights are read once for all of
// them, and the activations of such a group side by side, as the kernels want them. The walker owns
// the memory (context.h); nothing here computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kernel_table.h"

namespace godwit::cpu {

// Rows of a group that are computed at a time: their activations then stay in the second-level
// cache, and scratch does not grow with the prompt.
inline constexpr size_t kExpertRows = 32;

// One choice of one row: its slot-th expert.
struct ExpertRow {
  uint32_t row = 0;
  uint32_t slot = 0;

  friend bool operator==(const ExpertRow&, const ExpertRow&) = default;
};

// Ids as program::Routing has them: the first n_used floats of each row, rows `stride` apart.
struct RoutingRows {
  const float* ids = nullptr;
  size_t stride = 0;
  size_t n_rows = 0;
  size_t n_used = 0;
};

class ExpertRows {
 public:
  // Room for the groups: n_experts + 1 numbers, and a choice per row and slot.
  struct Area {
    std::span<uint32_t> begins;
    std::span<ExpertRow> rows;
  };
  // Sorts by expert, within one by row. An id that does not exist is a bug of the router and
  // aborts.
  ExpertRows(const RoutingRows& routing, const Area& area);

  [[nodiscard]] size_t n_experts() const { return begins_.size() - 1; }
  // Empty for an expert that no row chose.
  [[nodiscard]] std::span<const ExpertRow> of(size_t expert) const {
    return rows_.subspan(begins_[expert], begins_[expert + 1] - begins_[expert]);
  }

 private:
  std::span<const uint32_t> begins_;
  std::span<const ExpertRow> rows_;
};

// Which columns of a row's activations a slot multiplies: `n` from slot * stride on.
struct SlotColumns {
  size_t stride = 0;
  size_t n = 0;
};

// Copies the columns of each row's slot out of `from` (all planes of n_tokens tokens) into
// `scratch`, as activations of rows.size() tokens in as many planes. Slots begin at whole blocks.
[[nodiscard]] Activations gather_activations(ActivationKind kind, Planes planes,
                                             const Activations& from, size_t n_tokens,
                                             std::span<const ExpertRow> rows,
                                             const SlotColumns& columns,
                                             std::span<std::byte> scratch);
// The scratch that this takes, in two planes, for n_rows rows of n_cols columns.
[[nodiscard]] size_t gathered_bytes(ActivationKind kind, size_t n_rows, size_t n_cols);

}  // namespace godwit::cpu
