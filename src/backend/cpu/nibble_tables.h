// The sixteen values of a four-bit code as bytes for a shuffle, raised so that none is negative, or
// as magnitudes. Included by files compiled for one instruction set: all in an unnamed namespace
// (see isa_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/codebooks.h"

namespace godwit::cpu {
namespace {

struct alignas(16) NibbleTable {
  uint8_t bytes[16];
};

constexpr NibbleTable raise(const quant::ValueTable<16>& table, int by) {
  NibbleTable raised{};
  for (size_t i = 0; i < 16; ++i) raised.bytes[i] = static_cast<uint8_t>(table.values[i] + by);
  return raised;
}

// -127..113
constexpr int kIq4Offset = 128;
[[maybe_unused]] constexpr NibbleTable kIq4Signed = raise(quant::kIq4Values, 0);
[[maybe_unused]] constexpr NibbleTable kIq4Raised = raise(quant::kIq4Values, kIq4Offset);

// -12..12
constexpr int kFp4Offset = 12;
[[maybe_unused]] constexpr NibbleTable kFp4Signed = raise(quant::kFp4Values, 0);
[[maybe_unused]] constexpr NibbleTable kFp4Raised = raise(quant::kFp4Values, kFp4Offset);

}  // namespace
}  // namespace godwit::cpu
