#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matvec_args.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu {
namespace {

// Transposes tiles of 16 rows into columns of 16 elements. `Element` is what one row has in one
// column of the tile: for BF16 a pair of values.
template <class Element>
void pack_columns(const std::byte* src, size_t n_rows, size_t row_bytes, std::byte* dst) {
  constexpr size_t kColumnBytes = kTileRows * sizeof(Element);
  // So many columns at a time that the lines being written stay in the first-level cache.
  constexpr size_t kStep = 64;
  const size_t n_cols = (row_bytes + sizeof(Element) - 1) / sizeof(Element);
  for (size_t row = 0; row < n_rows; row += kTileRows, dst += n_cols * kColumnBytes) {
    const size_t present = std::min(kTileRows, n_rows - row);
    for (size_t begin = 0; begin < n_cols; begin += kStep) {
      const size_t end = std::min(n_cols, begin + kStep);
      if (present < kTileRows)
        std::memset(dst + begin * kColumnBytes, 0, (end - begin) * kColumnBytes);
      for (size_t r = 0; r < present; ++r) {
        const std::byte* line = src + (row + r) * row_bytes;
        for (size_t c = begin; c < end; ++c) {
          Element element{};
          const size_t offset = c * sizeof(Element);
          std::memcpy(&element, line + offset, std::min(sizeof(Element), row_bytes - offset));
          std::memcpy(dst + c * kColumnBytes + r * sizeof(Element), &element, sizeof(Element));
        }
      }
    }
  }
}

}  // namespace

void pack_f32(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_columns<uint32_t>(src, n_rows, cols * 4, dst);
}
void pack_f16(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_columns<uint16_t>(src, n_rows, cols * 2, dst);
}
void pack_bf16(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_columns<uint32_t>(src, n_rows, cols * 2, dst);
}

}  // namespace godwit::cpu
