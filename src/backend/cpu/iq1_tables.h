// What the kernels of IQ1_S multiply by, from the four bits that a row keeps per group: s and the
// sign of its delta (see TileIQ1_S). Included by files compiled for one instruction set: all in an
// unnamed namespace (see isa_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/nibble_tables.h"

namespace godwit::cpu {
namespace {

// 8 (2 s + 1): the factor of a dot of levels.
constexpr NibbleTable iq1_eightfold_scales() {
  NibbleTable table{};
  for (size_t i = 0; i < 16; ++i) table.bytes[i] = static_cast<uint8_t>(8 * (2 * (i % 8) + 1));
  return table;
}

// (2 s + 1) (delta - 8): the factor of the sum of x. The low byte of an int16 whose high byte is
// -1.
constexpr NibbleTable iq1_offsets() {
  NibbleTable table{};
  for (size_t i = 0; i < 16; ++i) {
    const size_t magnitude = (2 * (i % 8) + 1) * (i < 8 ? 7 : 9);
    table.bytes[i] = static_cast<uint8_t>(256 - magnitude);
  }
  return table;
}

constexpr NibbleTable kIq1EightfoldScales = iq1_eightfold_scales();
constexpr NibbleTable kIq1Offsets = iq1_offsets();

}  // namespace
}  // namespace godwit::cpu
