// How kernels over several rows cut them into register tiles. Included by files compiled for one
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

}  // namespace
}  // namespace godwit::cpu
