// A template's source as tokens, with jinja2's rules for white space: trim_blocks (a newline
// after a block or comment goes), lstrip_blocks (blanks before one at the start of a line go),
// and the signs - and + that overrule them. Raw blocks and comments are resolved here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::chat::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,   // text: with escapes resolved
  kInteger,  // text: digits as written
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // in bytes, of the source after newlines were made uniform
};

// Ends with a kEnd. Throws SyntaxError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace godwit::chat::jinja
