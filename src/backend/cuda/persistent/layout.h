// Where the repacked weights lie: slots of 8 rows x 1024 columns in the order in which
// mma.m16n8k16 wants its A operand. The 16 rows of an operand are 8 weight rows twice: rows 0-7 at
// columns k..k+15, rows 8-15 the same weight rows at k+16..k+31, so that one 16-byte load of a lane
// is its whole operand of 512 bytes and the product's two halves meet in one quad of lanes.
// Index functions only, host and device; repack.cu moves the bytes, matvec.cuh reads them.
#pragma once

#include <cstdint>

#include "backend/cuda/persistent/phase.h"

namespace godwit::cuda::persistent {

inline constexpr uint32_t kHalfSlotColumns = kSlotColumns / 2;  // what one warp of a pair eats
inline constexpr uint32_t kOperandColumns = 32;
inline constexpr uint32_t kOperandElements = kSlotRows * kOperandColumns;
inline constexpr uint32_t kSlotElements = kSlotRows * kSlotColumns;
inline constexpr uint32_t kPieceElements = 8;  // of one lane's 16-byte load

struct SlotPlace {
  uint32_t row = 0;
  uint32_t column = 0;
  friend bool operator==(SlotPlace, SlotPlace) = default;
};

// The element of a slot (row < 8, column < 1024) counted from its start.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint32_t element_in_slot(SlotPlace at) {
  const uint32_t k = at.column % kOperandColumns;
  const uint32_t lane = at.row * 4 + k % 8 / 2;
  const uint32_t element = k % 16 / 8 * 4 + k / 16 * 2 + k % 2;
  return at.column / kOperandColumns * kOperandElements + lane * kPieceElements + element;
}

// Its inverse.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr SlotPlace place_in_slot(uint32_t index) {
  const uint32_t lane = index % kOperandElements / kPieceElements;
  const uint32_t element = index % kPieceElements;
  return {.row = lane / 4,
          .column = index / kOperandElements * kOperandColumns + element / 2 % 2 * 16 +
                    element / 4 * 8 + lane % 4 * 2 + element % 2};
}

// Elements of a repacked matrix.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t packed_elements(const Shape& shape) {
  return uint64_t{shape.n_blocks} * shape.n_chunks * kSlotElements;
}

struct ChunkPlace {
  uint32_t block = 0;
  uint32_t chunk = 0;  // of all n_chunks of the block
  friend bool operator==(ChunkPlace, ChunkPlace) = default;
};

// Which block and chunk slot `slot` of a repacked matrix holds; the inverse of slot_index().
[[nodiscard]] GODWIT_HOST_DEVICE constexpr ChunkPlace place_of_slot(const Shape& shape,
                                                                    uint32_t slot) {
  const uint32_t stage = slot / (shape.stage_chunks * shape.n_blocks);
  const uint32_t width = stage_width(shape, stage);
  const uint32_t rest = slot - stage * shape.stage_chunks * shape.n_blocks;
  return {.block = rest / width, .chunk = stage * shape.stage_chunks + rest % width};
}

// Element (row, column) of the matrix, in elements from its start.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t packed_index(const Shape& shape, uint32_t row,
                                                                 uint32_t column) {
  const uint32_t chunk = column / kSlotColumns;
  const uint32_t stage = chunk / shape.stage_chunks;
  const uint32_t slot =
      slot_index(shape, stage, row / kSlotRows, chunk - stage * shape.stage_chunks);
  return uint64_t{slot} * kSlotElements +
         element_in_slot({.row = row % kSlotRows, .column = column % kSlotColumns});
}

}  // namespace godwit::cuda::persistent
