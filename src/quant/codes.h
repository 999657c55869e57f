// Where block types that have nothing else in common keep small codes: nibbles in halves, pairs of
// bits in planes. The one place that knows those bit positions; decoders call it.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace godwit::quant {

// Code i of 0..2n-1 in n bytes: byte i mod n, bits 3..0 for i < n, else bits 7..4.
template <int n>
[[nodiscard]] GODWIT_HOST_DEVICE inline int nibble_of_halves(const uint8_t* bytes, int i) {
  return (bytes[i % n] >> (4 * (i / n))) & 0x0f;
}

// Nibble i in the order of the bits: byte i / 2, bits 3..0 for an even i, else bits 7..4.
[[nodiscard]] GODWIT_HOST_DEVICE inline int nibble_in_order(const uint8_t* bytes, int i) {
  return (bytes[i / 2] >> (4 * (i % 2))) & 0x0f;
}

// Code i of 0..255 of two bits in 64 bytes, with i = 128 c + 32 k + j: byte 32 c + j, bits
// 2k+1..2k.
[[nodiscard]] GODWIT_HOST_DEVICE inline int pair_of_planes(const uint8_t* bytes, int i) {
  return (bytes[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
}

}  // namespace godwit::quant
