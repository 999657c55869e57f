// The shape of UTF-8 (Unicode 15, table 3-7): where the next character ends, and whether it is one.
// Used by the stream that prints tokens and by the pre-tokenizer; knows nothing of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::tokenizer {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Kind {
  kCharacter,   // `bytes` form one character
  kInvalid,     // `bytes` form a maximal subpart that no further byte can complete
  kUnfinished,  // the text ends inside a character
};

struct Utf8Step {
  size_t bytes = 0;
  Utf8Kind kind = Utf8Kind::kInvalid;
};

// What `text` (not empty) begins with. No surrogates, no overlong forms, nothing above U+10FFFF.
[[nodiscard]] Utf8Step next_utf8(std::string_view text);

// UTF-8 of a code point below 0x110000.
[[nodiscard]] std::string to_utf8(uint32_t code_point);

}  // namespace godwit::tokenizer
