// The KV cache's layout: how one position of one head gets in and out.
#include <array>
#include <cstring>
#include <type_traits>

#include "backend/cpu/attention.h"
#include "backend/cpu/vector_ops.h"
#include "backend/kv_rounding.h"
#include "base/check.h"
#include "base/half.h"

namespace godwit::cpu {
namespace {

using quant::BlockQ4_0;
using quant::BlockQ8_0;

constexpr size_t kBlock = 32;
constexpr size_t kMaxRowBytes = kMaxHeadDim * sizeof(float);

// Where 16 positions of a head begin, and which of them `position` is.
std::byte* tile_of(const KvCache& cache, std::byte* data, TensorType type, size_t kv_head,
                   size_t position) {
  const size_t first = kv_head * cache.capacity + position / kKvTile * kKvTile;
  return data + first * row_bytes(type, cache.head_dim);
}

template <class Word>
void put_key_words(const std::byte* row, size_t n, size_t slot, std::byte* tile) {
  for (size_t d = 0; d < n; ++d) {
    std::memcpy(tile + (d * kKvTile + slot) * sizeof(Word), row + d * sizeof(Word), sizeof(Word));
  }
}
template <class Word>
void get_key_words(const std::byte* tile, size_t n, size_t slot, std::byte* row) {
  for (size_t d = 0; d < n; ++d) {
    std::memcpy(row + d * sizeof(Word), tile + (d * kKvTile + slot) * sizeof(Word), sizeof(Word));
  }
}

uint8_t raised(int8_t code) { return static_cast<uint8_t>(code ^ -128); }
int8_t lowered(uint8_t code) { return static_cast<int8_t>(code ^ 0x80); }

// Where the codes of dimension d and position `slot` lie.
template <class Tile>
auto& code_of(Tile& tile, size_t d, size_t slot) {
  using Plain = std::remove_const_t<Tile>;
  if constexpr (std::is_same_v<Plain, KeyTileQ8>) {
    return tile.q[d / 4][slot][d % 4];
  } else if constexpr (std::is_same_v<Plain, ValueTileQ8>) {
    return tile.q[slot / 4][d / 16][d % 16][slot % 4];
  } else {
    return tile.q[slot / 4][d][slot % 4];  // ValueTileQ4: also of dimension d + 16
  }
}

template <class Tile>
void put(const BlockQ8_0& block, size_t slot, Tile& tile) {
  for (size_t d = 0; d < kBlock; ++d) code_of(tile, d, slot) = raised(block.qs[d]);
  tile.d[slot] = block.d;
}
template <class Tile>
void get(const Tile& tile, size_t slot, BlockQ8_0& block) {
  for (size_t d = 0; d < kBlock; ++d) block.qs[d] = lowered(code_of(tile, d, slot));
  block.d = tile.d[slot];
}

// The file has dimensions i and i + 16 in one byte, a tile of keys d and d + 4.
void put(const BlockQ4_0& block, size_t slot, KeyTileQ4& tile) {
  const auto code = [&](size_t d) { return block.qs[d % 16] >> (d < 16 ? 0 : 4) & 0x0f; };
  for (size_t d = 0; d < kBlock; d += 8) {
    for (size_t i = 0; i < 4; ++i) {
      tile.q[d / 8][slot][i] = static_cast<uint8_t>(code(d + i) | code(d + 4 + i) << 4);
    }
  }
  tile.d[slot] = block.d;
}
void get(const KeyTileQ4& tile, size_t slot, BlockQ4_0& block) {
  const auto code = [&](size_t d) {
    return tile.q[d / 8][slot][d % 4] >> (d % 8 < 4 ? 0 : 4) & 0x0f;
  };
  for (size_t i = 0; i < 16; ++i) {
    block.qs[i] = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
  }
  block.d = tile.d[slot];
}

void put(const BlockQ4_0& block, size_t slot, ValueTileQ4& tile) {
  for (size_t l = 0; l < 16; ++l) code_of(tile, l, slot) = block.qs[l];
  tile.d[slot] = block.d;
}
void get(const ValueTileQ4& tile, size_t slot, BlockQ4_0& block) {
  for (size_t l = 0; l < 16; ++l) block.qs[l] = code_of(tile, l, slot);
  block.d = tile.d[slot];
}

// Neither a row nor a tile in memory is more than bytes: they are copied in and out.
template <class Tile, class Block>
void put_blocks(const std::byte* row, size_t n, size_t slot, std::byte* tiles) {
  for (size_t b = 0; b < n / kBlock; ++b) {
    Block block;
    std::memcpy(&block, row + b * sizeof(Block), sizeof(Block));
    put(block, slot, reinterpret_cast<Tile*>(tiles)[b]);
  }
}
template <class Tile, class Block>
void get_blocks(const std::byte* tiles, size_t n, size_t slot, std::byte* row) {
  for (size_t b = 0; b < n / kBlock; ++b) {
    Block block;
    get(reinterpret_cast<const Tile*>(tiles)[b], slot, block);
    std::memcpy(row + b * sizeof(Block), &block, sizeof(Block));
  }
}

void put_key(const KvCache& cache, size_t kv_head, size_t position, const std::byte* row) {
  std::byte* const tile = tile_of(cache, cache.k, cache.k_type, kv_head, position);
  const size_t slot = position % kKvTile;
  switch (kv_element(cache.k_type)) {
    case KvElement::kF32:
      return put_key_words<uint32_t>(row, cache.head_dim, slot, tile);
    case KvElement::kF16:
    case KvElement::kBf16:
      return put_key_words<uint16_t>(row, cache.head_dim, slot, tile);
    case KvElement::kQ8:
      return put_blocks<KeyTileQ8, BlockQ8_0>(row, cache.head_dim, slot, tile);
    case KvElement::kQ4:
      return put_blocks<KeyTileQ4, BlockQ4_0>(row, cache.head_dim, slot, tile);
  }
}

void get_key(const KvCache& cache, size_t kv_head, size_t position, std::byte* row) {
  const std::byte* const tile = tile_of(cache, cache.k, cache.k_type, kv_head, position);
  const size_t slot = position % kKvTile;
  switch (kv_element(cache.k_type)) {
    case KvElement::kF32:
      return get_key_words<uint32_t>(tile, cache.head_dim, slot, row);
    case KvElement::kF16:
    case KvElement::kBf16:
      return get_key_words<uint16_t>(tile, cache.head_dim, slot, row);
    case KvElement::kQ8:
      return get_blocks<KeyTileQ8, BlockQ8_0>(tile, cache.head_dim, slot, row);
    case KvElement::kQ4:
      return get_blocks<KeyTileQ4, BlockQ4_0>(tile, cache.head_dim, slot, row);
  }
}

void put_value(const KvCache& cache, size_t kv_head, size_t position, const std::byte* row) {
  std::byte* const tile = tile_of(cache, cache.v, cache.v_type, kv_head, position);
  const size_t slot = position % kKvTile;
  switch (kv_element(cache.v_type)) {
    case KvElement::kF32:
    case KvElement::kF16:
    case KvElement::kBf16: {
      const size_t bytes = row_bytes(cache.v_type, cache.head_dim);
      std::memcpy(tile + slot * bytes, row, bytes);
      return;
    }
    case KvElement::kQ8:
      return put_blocks<ValueTileQ8, BlockQ8_0>(row, cache.head_dim, slot, tile);
    case KvElement::kQ4:
      return put_blocks<ValueTileQ4, BlockQ4_0>(row, cache.head_dim, slot, tile);
  }
}

void get_value(const KvCache& cache, size_t kv_head, size_t position, std::byte* row) {
  const std::byte* const tile = tile_of(cache, cache.v, cache.v_type, kv_head, position);
  const size_t slot = position % kKvTile;
  switch (kv_element(cache.v_type)) {
    case KvElement::kF32:
    case KvElement::kF16:
    case KvElement::kBf16: {
      const size_t bytes = row_bytes(cache.v_type, cache.head_dim);
      std::memcpy(row, tile + slot * bytes, bytes);
      return;
    }
    case KvElement::kQ8:
      return get_blocks<ValueTileQ8, BlockQ8_0>(tile, cache.head_dim, slot, row);
    case KvElement::kQ4:
      return get_blocks<ValueTileQ4, BlockQ4_0>(tile, cache.head_dim, slot, row);
  }
}

template <class Block>
void round_blocks(const float* x, size_t n, std::byte* row) {
  for (size_t b = 0; b < n / kBlock; ++b) {
    Block block;
    backend::round_kv(std::span<const float, kBlock>(x + b * kBlock, kBlock), block);
    std::memcpy(row + b * sizeof(Block), &block, sizeof(Block));
  }
}

// Numbers as backend/state.h lays them out, in `row` unless they are that already.
const std::byte* rounded(TensorType type, const float* x, size_t n, Isa isa, std::byte* row) {
  switch (kv_element(type)) {
    case KvElement::kF32:
      return reinterpret_cast<const std::byte*>(x);
    case KvElement::kF16:
      vector_ops(isa).f32_to_f16(x, reinterpret_cast<uint16_t*>(row), n);
      return row;
    case KvElement::kBf16:
      vector_ops(isa).f32_to_bf16(x, reinterpret_cast<uint16_t*>(row), n);
      return row;
    case KvElement::kQ8:
      round_blocks<BlockQ8_0>(x, n, row);
      return row;
    case KvElement::kQ4:
      round_blocks<BlockQ4_0>(x, n, row);
      return row;
  }
  return row;
}

template <class Block>
void decode_blocks(const std::byte* row, std::span<float> x) {
  for (size_t b = 0; b < x.size() / kBlock; ++b) {
    Block block;
    std::memcpy(&block, row + b * sizeof(Block), sizeof(Block));
    decode_block(block, x.data() + b * kBlock);
  }
}

void widen(TensorType type, const std::byte* row, std::span<float> x) {
  switch (kv_element(type)) {
    case KvElement::kF32:
      std::memcpy(x.data(), row, x.size_bytes());
      return;
    case KvElement::kF16:
    case KvElement::kBf16:
      for (size_t d = 0; d < x.size(); ++d) {
        uint16_t word = 0;
        std::memcpy(&word, row + d * sizeof word, sizeof word);
        x[d] = type == TensorType::kF16 ? f16_to_f32(word) : bf16_to_f32(word);
      }
      return;
    case KvElement::kQ8:
      return decode_blocks<BlockQ8_0>(row, x);
    case KvElement::kQ4:
      return decode_blocks<BlockQ4_0>(row, x);
  }
}

struct alignas(64) Row {
  std::array<std::byte, kMaxRowBytes> bytes;
};

}  // namespace

void kv_put(const KvCache& cache, size_t kv_head, size_t position, const std::byte* k,
            const std::byte* v) {
  put_key(cache, kv_head, position, k);
  put_value(cache, kv_head, position, v);
}

void kv_get(const KvCache& cache, size_t kv_head, size_t position, std::byte* k, std::byte* v) {
  get_key(cache, kv_head, position, k);
  get_value(cache, kv_head, position, v);
}

void kv_store(const KvCache& cache, size_t kv_head, size_t position, const float* k, const float* v,
              Isa isa) {
  Row row;
  const size_t n = cache.head_dim;
  put_key(cache, kv_head, position, rounded(cache.k_type, k, n, isa, row.bytes.data()));
  put_value(cache, kv_head, position, rounded(cache.v_type, v, n, isa, row.bytes.data()));
}

void kv_read(const KvCache& cache, size_t kv_head, size_t position, std::span<float> k,
             std::span<float> v) {
  check(k.size() == cache.head_dim && v.size() == cache.head_dim, "kv_read takes whole heads");
  Row row;
  get_key(cache, kv_head, position, row.bytes.data());
  widen(cache.k_type, row.bytes.data(), k);
  get_value(cache, kv_head, position, row.bytes.data());
  widen(cache.v_type, row.bytes.data(), v);
}

}  // namespace godwit::cpu
