#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them (all others are
// 80..BF). The narrower ranges keep out overlong forms, surrogates and what lies above U+10FFFF.
struct Lead {
  size_t continuation_bytes;
  uint8_t first_low;
  uint8_t first_high;
};

constexpr Lead kNotALead{0, 1, 0};

constexpr Lead classify(uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};
  if (lead == 0xED) return {2, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {3, 0x80, 0xBF};
  if (lead == 0xF4) return {3, 0x80, 0x8F};
  return kNotALead;
}

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte_at(0) < 0x80) return {1, Utf8Kind::kCharacter};
  const Lead lead = classify(byte_at(0));
  if (lead.continuation_bytes == 0) return {1, Utf8Kind::kInvalid};
  for (size_t i = 1; i <= lead.continuation_bytes; ++i) {
    if (i == text.size()) return {i, Utf8Kind::kUnfinished};
    const uint8_t low = i == 1 ? lead.first_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.first_high : uint8_t{0xBF};
    if (byte_at(i) < low || byte_at(i) > high) return {i, Utf8Kind::kInvalid};
  }
  return {lead.continuation_bytes + 1, Utf8Kind::kCharacter};
}

std::string to_utf8(uint32_t code_point) {
  const auto tail = [](uint32_t bits) { return static_cast<char>(0x80u | (bits & 0x3Fu)); };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {static_cast<char>(0xC0u | (code_point >> 6)), tail(code_point)};
  if (code_point < 0x10000) {
    return {static_cast<char>(0xE0u | (code_point >> 12)), tail(code_point >> 6), tail(code_point)};
  }
  return {static_cast<char>(0xF0u | (code_point >> 18)), tail(code_point >> 12),
          tail(code_point >> 6), tail(code_point)};
}

}  // namespace godwit::tokenizer
