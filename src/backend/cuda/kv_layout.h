// Where keys and values lie on the device: the one layout that prefill, the stepwise and the
// persistent executor share. A host and device index function, no memory. One layer's cache is one
// allocation of KvLayout::layer_bytes(): its KV heads one after the other.
//
// Order::kOperand, for K and V of the same 16-bit type and head_dim a multiple of 32: per head,
// tiles of kTilePositions positions, each tile all K of its positions, then all V, every element
// where mma.m16n8k16 wants it as its B operand. One aligned 16-byte load of a lane is the operand
// of two products; a tile is head_dim * 128 bytes that one bulk copy can fetch.
//   K: columns (n) are positions, k runs over dims. Load i of lane l, i = (p8, dim pair): position
//      p8 * 8 + l / 4, dims pair * 32 + {0, 16} + 2 (l % 4) + {0, 1, 8, 9}.
//   V: columns are dims, k runs over positions. Load i of lane l, i = (p16, dim pair): dims
//      pair * 16 + {0, 8} + l / 4, positions p16 * 16 + 2 (l % 4) + {0, 1, 8, 9}.
// Order::kPlain, for all else: per head, K [capacity, head_dim], then V [capacity, head_dim].
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/tensor_type.h"
#include "program/program.h"

namespace godwit::cuda {

inline constexpr uint32_t kTilePositions = 32;
// Capacity is rounded up to this, so that a copy of two tiles never crosses a head's end.
inline constexpr uint32_t kCapacityStep = 64;

// Element of a K of one head in operand order, from the head's first element.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t operand_k_index(uint32_t head_dim,
                                                                    uint64_t position,
                                                                    uint32_t dim) {
  const uint64_t tile = position / kTilePositions;
  const auto p = static_cast<uint32_t>(position % kTilePositions);
  const uint32_t lane = p % 8 * 4 + dim % 8 / 2;
  const uint32_t load = p / 8 * (head_dim / 32) + dim / 32;
  return tile * 2 * kTilePositions * head_dim + (uint64_t{load} * 32 + lane) * 8 +
         dim % 32 / 16 * 4 + dim % 16 / 8 * 2 + dim % 2;
}

// The same of a V.
[[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t operand_v_index(uint32_t head_dim,
                                                                    uint64_t position,
                                                                    uint32_t dim) {
  const uint64_t tile = position / kTilePositions;
  const auto p = static_cast<uint32_t>(position % kTilePositions);
  const uint32_t lane = dim % 8 * 4 + p % 8 / 2;
  const uint32_t load = p / 16 * (head_dim / 16) + dim / 16;
  return (tile * 2 + 1) * kTilePositions * head_dim + (uint64_t{load} * 32 + lane) * 8 +
         dim % 16 / 8 * 4 + p % 16 / 8 * 2 + p % 2;
}

struct KvLayout {
  enum class Order : uint8_t { kPlain, kOperand };

  Order order = Order::kPlain;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t k_bytes = 2;   // of one element
  uint32_t v_bytes = 2;   // of one element
  uint64_t capacity = 0;  // positions, a multiple of kCapacityStep

  [[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t head_bytes() const {
    return capacity * head_dim * (k_bytes + v_bytes);
  }
  [[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t layer_bytes() const {
    return n_kv_heads * head_bytes();
  }
  // Bytes from the layer's base to one element.
  [[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t k_index(uint32_t head, uint64_t position,
                                                              uint32_t dim) const {
    const uint64_t element = order == Order::kOperand ? operand_k_index(head_dim, position, dim)
                                                      : position * head_dim + dim;
    return head * head_bytes() + element * k_bytes;
  }
  [[nodiscard]] GODWIT_HOST_DEVICE constexpr uint64_t v_index(uint32_t head, uint64_t position,
                                                              uint32_t dim) const {
    if (order == Order::kOperand) {
      return head * head_bytes() + operand_v_index(head_dim, position, dim) * v_bytes;
    }
    return head * head_bytes() + capacity * head_dim * k_bytes +
           (position * head_dim + dim) * v_bytes;
  }
};

[[nodiscard]] constexpr KvLayout kv_layout(const program::Kv& kv, TensorType k_type,
                                           TensorType v_type, uint64_t n_positions) {
  const bool halves = k_type == v_type && k_type != TensorType::kF32;
  return {.order =
              halves && kv.head_dim % 32 == 0 ? KvLayout::Order::kOperand : KvLayout::Order::kPlain,
          .n_kv_heads = kv.n_kv_heads,
          .head_dim = kv.head_dim,
          .k_bytes = k_type == TensorType::kF32 ? 4u : 2u,
          .v_bytes = v_type == TensorType::kF32 ? 4u : 2u,
          .capacity = (n_positions + kCapacityStep - 1) / kCapacityStep * kCapacityStep};
}

}  // namespace godwit::cuda
