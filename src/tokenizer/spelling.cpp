#include "tokenizer/spelling.h"

#include <fmt/format.h>

#include <charconv>

#include "tokenizer/byte_level.h"

namespace godwit::tokenizer {
namespace {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

// The text of a byte token is "<0x0A>". Another text stands for itself.
std::string byte_token_bytes(std::string_view text) {
  if (text.size() == 6 && text.starts_with("<0x") && text.ends_with('>')) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
    if (error == std::errc{} && end == text.data() + 5) return {static_cast<char>(byte)};
  }
  return std::string(text);
}

}  // namespace

std::string escape_spaces(std::string_view text) { return replace_all(text, " ", kEscapedSpace); }

std::string unescape_spaces(std::string_view text) { return replace_all(text, kEscapedSpace, " "); }

std::string spell(std::string_view text, Spelling spelling) {
  return spelling == Spelling::kByteLevel ? to_byte_level(text) : escape_spaces(text);
}

std::string token_bytes(std::string_view text, TokenKind kind, Spelling spelling) {
  switch (kind) {
    case TokenKind::kNormal:
      return spelling == Spelling::kByteLevel ? from_byte_level(text) : unescape_spaces(text);
    case TokenKind::kByte:
      return byte_token_bytes(text);
    case TokenKind::kUnused:
      return {};
    case TokenKind::kUserDefined:
      return spelling == Spelling::kByteLevel ? std::string(text) : unescape_spaces(text);
    case TokenKind::kUnknown:
    case TokenKind::kControl:
      return std::string(text);
  }
  return {};
}

ByteTokens find_byte_tokens(const TokenIds& ids) {
  ByteTokens tokens;
  for (size_t byte = 0; byte < tokens.size(); ++byte) {
    const auto token = ids.find(fmt::format("<0x{:02X}>", byte));
    tokens[byte] = token == ids.end() ? kNoToken : TokenId{token->second};
  }
  return tokens;
}

}  // namespace godwit::tokenizer
