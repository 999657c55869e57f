// How kernels cut rows and columns into register tiles. Included by files compiled for one
// instruction set; unnamed namespace as in isa_rows.h.
#pragma once

#include <cstddef>

namespace godwit::cpu {
namespace {

// How many of n rows to take next, so that no tile of one row is left over where avoidable.
[[gnu::always_inline]] inline size_t next_rows(size_t n) {
  if (n <= 4) return n;
  return n == 5 || n == 6 ? 3 : 4;
}

// Calls body.template run<kRows>(first_row) for register tiles of rows [0, n).
template <class Body>
[[gnu::always_inline]] inline void for_row_tiles(size_t n, const Body& body) {
  size_t row = 0;
  while (row < n) {
    const size_t take = next_rows(n - row);
    switch (take) {
      case 1:
        body.template run<1>(row);
        break;
      case 2:
        body.template run<2>(row);
        break;
      case 3:
        body.template run<3>(row);
        break;
      default:
        body.template run<4>(row);
        break;
    }
    row += take;
  }
}

// Calls body.template run<kVectors>(column, width of the last vector) for columns [0, n), at most
// kMost vectors at a time.
template <size_t kMost, class Body>
[[gnu::always_inline]] inline void for_column_tiles(size_t n, const Body& body) {
  size_t j = 0;
  if constexpr (kMost >= 8) {
    for (; j + 128 <= n; j += 128) body.template run<8>(j, 16);
  }
  if constexpr (kMost >= 4) {
    for (; j + 64 <= n; j += 64) body.template run<4>(j, 16);
  }
  if constexpr (kMost >= 2) {
    for (; j + 32 <= n; j += 32) body.template run<2>(j, 16);
  }
  for (; j + 16 <= n; j += 16) body.template run<1>(j, 16);
  if (j < n) body.template run<1>(j, n - j);
}

}  // namespace
}  // namespace godwit::cpu
