#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backend/cpu/matvec_args.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/tile_layout.h"

namespace godwit::cpu {
namespace {

// Transposes tiles of 16 rows into columns of 16 elements. `Element` is what one row has in one
// column of the tile: for BF16 a pair of values, of which the last may lack its second half.
template <class Element>
void pack_columns(const std::byte* src, size_t n_rows, size_t row_bytes, std::byte* dst) {
  constexpr size_t kSize = sizeof(Element);
  const size_t n_whole = row_bytes / kSize;
  const size_t n_cols = (row_bytes + kSize - 1) / kSize;
  for (size_t row = 0; row < n_rows; row += kTileRows) {
    const size_t present = std::min(kTileRows, n_rows - row);
    const std::byte* lines = src + row * row_bytes;
    for (size_t c = 0; c < n_cols; ++c, dst += kTileRows * kSize) {
      Element column[kTileRows] = {};
      const size_t size = c < n_whole ? kSize : row_bytes % kSize;
      if (present == kTileRows && size == kSize) {
        for (size_t r = 0; r < kTileRows; ++r) {
          std::memcpy(&column[r], lines + r * row_bytes + c * kSize, kSize);
        }
      } else {
        for (size_t r = 0; r < present; ++r) {
          std::memcpy(&column[r], lines + r * row_bytes + c * kSize, size);
        }
      }
      std::memcpy(dst, column, sizeof(column));
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
