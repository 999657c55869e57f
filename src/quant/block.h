// What every block struct quant/<type>.h has in common: it is the file's bytes as they are, packed
// and trivially copyable, and names its type and its number of weights. A block in a mapped file
// may lie at any address: load_block() is the way to read one there.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/host_device.h"
#include "base/tensor_type.h"

namespace godwit::quant {

// True when `Block` is the packed layout that base/tensor_type.h promises for its type.
template <class Block>
inline constexpr bool kMatchesGeometry =
    std::is_trivially_copyable_v<Block> &&
    sizeof(Block) == tensor_geometry(Block::kType).block_bytes &&
    static_cast<uint32_t>(Block::kWeights) == tensor_geometry(Block::kType).block_weights;

// Copies a block out of bytes of any alignment.
template <class Block>
[[nodiscard]] GODWIT_HOST_DEVICE inline Block load_block(const std::byte* src) {
  Block block;
  memcpy(&block, src, sizeof(Block));
  return block;
}

}  // namespace godwit::quant
