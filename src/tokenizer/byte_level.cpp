#include "tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "tokenizer/utf8.h"

namespace godwit::tokenizer {
namespace {

constexpr size_t kAlphabetEnd = 0x144;  // one past the last character of the alphabet
constexpr uint16_t kNoByte = 0x100;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint16_t, 256> make_characters() {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    characters[byte] = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}
constexpr std::array<uint16_t, 256> kCharacterOfByte = make_characters();

constexpr std::array<uint16_t, kAlphabetEnd> make_bytes() {
  std::array<uint16_t, kAlphabetEnd> bytes{};
  bytes.fill(kNoByte);
  for (uint16_t byte = 0; byte < 256; ++byte) bytes[kCharacterOfByte[byte]] = byte;
  return bytes;
}
constexpr std::array<uint16_t, kAlphabetEnd> kByteOfCharacter = make_bytes();

static_assert(kCharacterOfByte[' '] == 0x120 && kCharacterOfByte['\n'] == 0x10A);
static_assert(kCharacterOfByte[0xAD] == kAlphabetEnd - 1);

// Code point of a character of two bytes, the longest in the alphabet.
uint32_t two_byte_code_point(std::string_view character) {
  return (static_cast<uint32_t>(static_cast<uint8_t>(character[0])) & 0x1Fu) << 6 |
         (static_cast<uint32_t>(static_cast<uint8_t>(character[1])) & 0x3Fu);
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const uint16_t character = kCharacterOfByte[static_cast<uint8_t>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += to_utf8(character);
    }
  }
  return text;
}

std::string from_byte_level(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    const std::string_view character = text.substr(0, step.bytes);
    text.remove_prefix(step.bytes);
    uint32_t code_point = kAlphabetEnd;
    if (step.kind == Utf8Kind::kCharacter && step.bytes == 1) {
      code_point = static_cast<uint8_t>(character[0]);
    } else if (step.kind == Utf8Kind::kCharacter && step.bytes == 2) {
      code_point = two_byte_code_point(character);
    }
    const uint16_t byte = code_point < kAlphabetEnd ? kByteOfCharacter[code_point] : kNoByte;
    if (byte == kNoByte) {
      bytes += character;
    } else {
      bytes += static_cast<char>(byte);
    }
  }
  return bytes;
}

}  // namespace godwit::tokenizer
