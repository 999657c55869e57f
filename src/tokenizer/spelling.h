// How vocabularies write text down, and what their entries stand for. Two ways: the byte-level
// alphabet of GPT-2, and SentencePiece's, in which a space is U+2581 and bytes that no entry covers
// have entries "<0x00>" to "<0xFF>". Knows nothing of merging.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/types.h"
#include "tokenizer/tokenizer.h"

namespace godwit::tokenizer {

// Tokens by their text; the views must outlive the map.
using TokenIds = std::unordered_map<std::string_view, int32_t>;

enum class Spelling { kByteLevel, kEscapedSpaces };

inline constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";  // U+2581

[[nodiscard]] std::string escape_spaces(std::string_view text);
[[nodiscard]] std::string unescape_spaces(std::string_view text);

// Text as the vocabulary would spell it.
[[nodiscard]] std::string spell(std::string_view text, Spelling spelling);

// The bytes that a token of this text and kind stands for; none for unused ones.
[[nodiscard]] std::string token_bytes(std::string_view text, TokenKind kind, Spelling spelling);

// index = byte; kNoToken where there is no token for it.
using ByteTokens = std::array<TokenId, 256>;

// The tokens "<0x00>" to "<0xFF>".
[[nodiscard]] ByteTokens find_byte_tokens(const TokenIds& ids);

}  // namespace godwit::tokenizer
