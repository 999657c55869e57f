// What the two targets of the tokenizer hold any text, any user ranges and any vocabulary to: what
// was encoded decodes to the same bytes, in chunks too, and no special token comes out of a user
// range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/utf8_stream.h"

namespace godwit::tokenizer {

// Whether the vocabulary puts a space before each stretch of plain text.
enum class AddsSpace { kNo, kYes };

// Two bytes for each range: the gap before it, and its length.
inline std::vector<TextRange> user_ranges(std::string_view bytes, size_t text_bytes) {
  std::vector<TextRange> ranges;
  size_t at = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const size_t begin = at + static_cast<uint8_t>(bytes[i]);
    const size_t end = begin + 1 + static_cast<uint8_t>(bytes[i + 1]) % 16;
    if (end > text_bytes) break;
    ranges.push_back({begin, end});
    at = end;
  }
  return ranges;
}

// Walks the tokens along the text: each must stand for the bytes at its place.
inline void check_tokens(const Tokenizer& tokenizer, const MarkedText& text,
                         const std::vector<TokenId>& tokens, AddsSpace adds_space) {
  size_t at = 0;
  bool begins_stretch = true;
  for (const TokenId token : tokens) {
    std::string_view bytes = tokenizer.bytes(token);
    const TokenKind kind = tokenizer.kind(token);
    const bool is_plain = kind == TokenKind::kNormal || kind == TokenKind::kByte;
    if (begins_stretch && is_plain && adds_space == AddsSpace::kYes) {
      check(bytes.starts_with(' '), "a stretch of text that does not begin with the added space");
      bytes.remove_prefix(1);
    }
    begins_stretch = !is_plain;
    check(text.text.substr(at, bytes.size()) == bytes, "a token that is not the text");
    for (const TextRange& range : text.user_ranges) {
      const bool touches = range.begin < at + bytes.size() && at < range.end;
      // White space can forge nothing, and a character may have no other token.
      const bool is_harmless = kind == TokenKind::kUserDefined &&
                               (bytes.find_first_not_of(" \t\r\n") == std::string_view::npos ||
                                next_utf8(bytes).bytes == bytes.size());
      check(!touches || is_plain || is_harmless, "a special token out of a user range");
    }
    at += bytes.size();
  }
  check(at == text.text.size(), "bytes were lost");
}

inline void check_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                         std::string_view text) {
  Utf8Stream by_token;
  std::string streamed;
  for (const TokenId token : tokens) streamed += by_token.push(tokenizer.bytes(token));
  streamed += by_token.finish();
  Utf8Stream at_once;
  std::string whole = at_once.push(text);
  whole += at_once.finish();
  check(streamed == whole, "the chunks changed the streamed text");
}

inline void check_text(const Tokenizer& tokenizer, const MarkedText& text, AddsSpace adds_space) {
  const std::vector<TokenId> marked = tokenizer.encode(text, AddBos::kNever);
  check_tokens(tokenizer, text, marked, adds_space);
  if (adds_space == AddsSpace::kNo) check_stream(tokenizer, marked, text.text);
  const std::vector<TokenId> plain = tokenizer.encode(text.text, Specials::kText, AddBos::kNever);
  check(tokenizer.decode(plain) == text.text, "decoding does not undo encoding");
}

}  // namespace godwit::tokenizer
