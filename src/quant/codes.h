// Where block types that have nothing else in common keep small codes: nibbles in halves, pairs of
// bits in planes. The one place that knows those bit positions; decoders call it.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace godwit::quant {

// Code i of a half: bits 3..0 of byte i for half 0, bits 7..4 for half 1.
[[nodiscard]] GODWIT_HOST_DEVICE inline int nibble_of_half(const uint8_t* bytes, int half, int i) {
  return (bytes[i] >> (4 * half)) & 0x0f;
}

// Code i in the order of the bits: byte i / 2, bits 3..0 for an even i, else bits 7..4.
[[nodiscard]] GODWIT_HOST_DEVICE inline int nibble_in_order(const uint8_t* bytes, int i) {
  return nibble_of_half(bytes, i % 2, i / 2);
}

// Code i = 0..31 of plane 0..7 in 64 bytes, with plane = 4 c + k: bits 2k+1..2k of byte 32 c + i.
[[nodiscard]] GODWIT_HOST_DEVICE inline int pair_of_plane(const uint8_t* bytes, int plane, int i) {
  return (bytes[32 * (plane / 4) + i] >> (2 * (plane % 4))) & 3;
}

}  // namespace godwit::quant
