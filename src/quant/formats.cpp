#include "quant/formats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "quant/block.h"
#include "quant/blocks.h"

namespace godwit::quant {
namespace {

template <class Block>
void decode_blocks(const std::byte* src, size_t n_blocks, float* out) {
  for (size_t i = 0; i < n_blocks; ++i) {
    decode_block(load_block<Block>(src + i * sizeof(Block)), out + i * size_t{Block::kWeights});
  }
}

template <class Block>
void store_random_block(RandomStream& random, float deviation, std::byte* out) {
  Block block;
  random_block(random, deviation, block);
  std::memcpy(out, &block, sizeof(Block));
}

template <class... Blocks>
constexpr std::array<Format, sizeof...(Blocks)> make_table(BlockList<Blocks...>) {
  return {
      Format{Blocks::kType, decode_blocks<Blocks>, store_random_block<Blocks>}...,
  };
}

constexpr auto kFormats = make_table(AllBlocks{});
static_assert(std::ranges::is_sorted(kFormats, {}, &Format::type) &&
              std::ranges::adjacent_find(kFormats, {}, &Format::type) == kFormats.end());

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(TensorType type) {
  const auto found = std::ranges::lower_bound(kFormats, type, {}, &Format::type);
  return found != kFormats.end() && found->type == type ? &*found : nullptr;
}

void decode_row(TensorType type, std::span<const std::byte> src, std::span<float> out) {
  const Format* format = find_format(type);
  check(format != nullptr, "decode_row: the type has no format");
  check(out.size() % tensor_geometry(type).block_weights == 0, "decode_row: not whole blocks");
  check(src.size() >= row_bytes(type, out.size()), "decode_row: fewer bytes than the row has");
  format->decode(src.data(), out.size() / tensor_geometry(type).block_weights, out.data());
}

}  // namespace godwit::quant
