// The byte-level alphabet of GPT-2: every byte stands as one printable character, so that a
// vocabulary of text can hold any bytes. Printable Latin-1 bytes are themselves; the other 68 take
// U+0100 onwards in order (a space is U+0120). Source: encoder.py of openai/gpt-2,
// bytes_to_unicode.
#pragma once

#include <string>
#include <string_view>

namespace godwit::tokenizer {

// The vocabulary spelling of these bytes.
[[nodiscard]] std::string to_byte_level(std::string_view bytes);

// The bytes that a vocabulary spelling stands for. A character outside the alphabet stands for
// its own UTF-8 bytes, so that no vocabulary entry is without a meaning.
[[nodiscard]] std::string from_byte_level(std::string_view text);

}  // namespace godwit::tokenizer
