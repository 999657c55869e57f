// From a row to its blocks: what every encode_<family>.cpp begins with. Host only.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "base/check.h"

namespace godwit::quant {

// Calls encode(weights of one block) -> Block for each block, and stores what comes back.
template <class Block, class Encode>
void encode_blocks(std::span<const float> weights, std::span<std::byte> out, Encode&& encode) {
  constexpr size_t kSize = Block::kWeights;
  const size_t n_blocks = weights.size() / kSize;
  check(n_blocks * kSize == weights.size() && n_blocks * sizeof(Block) == out.size(),
        "encoders take whole blocks and their exact place");
  for (size_t i = 0; i < n_blocks; ++i) {
    const Block block = encode(weights.subspan(i * kSize).template first<kSize>());
    std::memcpy(out.data() + i * sizeof(Block), &block, sizeof(Block));
  }
}

}  // namespace godwit::quant
