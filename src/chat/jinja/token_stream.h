// The parser's view of the tokens: what comes next, and clear errors where it is something else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/error.h"
#include "chat/jinja/lexer.h"

namespace godwit::chat::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_name(std::string_view name) const {
    return is(TokenKind::kName) && current().text == name;
  }
  bool is_operator(std::string_view op) const {
    return is(TokenKind::kOperator) && current().text == op;
  }

  // The current token; moves past it.
  const Token& next() {
    const Token& token = current();
    at_ += at_ + 1 < tokens_.size() ? 1U : 0U;
    return token;
  }
  bool skip_name(std::string_view name) { return is_name(name) && (next(), true); }
  bool skip_operator(std::string_view op) { return is_operator(op) && (next(), true); }

  const Token& expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) {
      unexpected(what);
    }
    return next();
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) {
      unexpected(fmt::format("'{}'", op));
    }
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) {
      unexpected(fmt::format("'{}'", name));
    }
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    error(current(), fmt::format("expected {}, found {}", what, describe(current())));
  }
  [[noreturn]] static void error(const Token& token, std::string message) {
    throw SyntaxError{.message = std::move(message), .line = token.line, .column = token.column};
  }

  static std::string describe(const Token& token) {
    constexpr std::size_t kShown = 40;
    switch (token.kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kData:
        return "text";
      case TokenKind::kString:
        return "a string";
      case TokenKind::kVariableBegin:
      case TokenKind::kVariableEnd:
      case TokenKind::kBlockBegin:
      case TokenKind::kBlockEnd:
      case TokenKind::kName:
      case TokenKind::kInteger:
      case TokenKind::kFloat:
      case TokenKind::kOperator:
        return fmt::format("'{}'", token.text.substr(0, kShown));
    }
    return "";
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace godwit::chat::jinja
