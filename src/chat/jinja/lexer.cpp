#include "chat/jinja/lexer.h"

#include <array>
#include <optional>

#include "chat/jinja/budget.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

// Longest first, so that the first match is the right one.
constexpr auto kOperators = std::to_array<std::string_view>(
    {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
     "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"});

// Newlines become \n, and one at the very end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1U : 0U;
    }
  }
  if (!out.empty() && out.back() == '\n') {
    out.pop_back();
  }
  return out;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      lex_data();
    }
    add(TokenKind::kEnd, "", at_);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts_with(std::string_view what) const { return rest().substr(0, what.size()) == what; }

  // Line and column of an offset; offsets only ever grow.
  void add(TokenKind kind, std::string text, std::size_t offset) {
    locate(offset);
    tokens_.push_back({.kind = kind,
                       .text = std::move(text),
                       .line = line_,
                       .column = static_cast<int>(offset - line_begin_) + 1});
  }

  void locate(std::size_t offset) {
    for (; located_ < offset; ++located_) {
      if (source_[located_] == '\n') {
        ++line_;
        line_begin_ = located_ + 1;
      }
    }
  }

  [[noreturn]] void error(std::size_t offset, std::string message) {
    locate(offset);
    throw SyntaxError{.message = std::move(message),
                      .line = line_,
                      .column = static_cast<int>(offset - line_begin_) + 1};
  }

  // Length of the white space at an offset.
  std::size_t space_at(std::size_t offset) const {
    std::size_t end = offset;
    while (end < source_.size()) {
      const Decoded decoded = decode_utf8(std::string_view(source_).substr(end));
      if (!is_space(decoded.value)) {
        break;
      }
      end += static_cast<std::size_t>(decoded.length);
    }
    return end - offset;
  }

  static bool is_blank(std::string_view text) {
    while (!text.empty()) {
      const Decoded decoded = decode_utf8(text);
      if (!is_space(decoded.value)) {
        return false;
      }
      text.remove_prefix(static_cast<std::size_t>(decoded.length));
    }
    return true;
  }

  static std::string_view right_stripped(std::string_view text) {
    std::size_t keep = 0;
    for (std::size_t i = 0; i < text.size();) {
      const Decoded decoded = decode_utf8(text.substr(i));
      i += static_cast<std::size_t>(decoded.length);
      keep = is_space(decoded.value) ? keep : i;
    }
    return text.substr(0, keep);
  }

  // Text up to the next tag, then the tag itself.
  void lex_data() {
    const std::size_t begin = at_;
    std::size_t tag = source_.find('{', at_);
    while (tag != std::string::npos && !is_tag(tag)) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string::npos) {
      add(TokenKind::kData, source_.substr(begin), begin);
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    add_data(begin, tag, sign, kind != '{');
    at_ = tag + 2 + (sign != 0 ? 1 : 0);
    if (kind == '#') {
      skip_comment(tag);
    } else if (kind == '{') {
      add(TokenKind::kVariableBegin, "{{", tag);
      lex_code("}}", TokenKind::kVariableEnd, tag);
    } else if (!lex_raw(tag)) {
      add(TokenKind::kBlockBegin, "{%", tag);
      lex_code("%}", TokenKind::kBlockEnd, tag);
    }
  }

  bool is_tag(std::size_t brace) const {
    if (brace + 1 >= source_.size()) {
      return false;
    }
    const char c = source_[brace + 1];
    return c == '{' || c == '%' || c == '#';
  }

  char sign_at(std::size_t offset) const {
    const char c = offset < source_.size() ? source_[offset] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  // The data before a tag, stripped as the tag's sign and lstrip_blocks want it.
  void add_data(std::size_t begin, std::size_t end, char sign, bool strips_blanks) {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      text = right_stripped(text);
    } else if (sign == 0 && strips_blanks) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t last_line = newline == std::string_view::npos ? 0 : newline + 1;
      if ((last_line > 0 || line_starting_) && is_blank(text.substr(last_line))) {
        text = text.substr(0, last_line);
      }
    }
    if (!text.empty()) {
      add(TokenKind::kData, std::string(text), begin);
    }
  }

  // After the closing sign: - takes all white space, a block or comment takes one newline.
  void end_tag(char sign, bool trims_newline) {
    if (sign == '-') {
      at_ += space_at(at_);
    } else if (sign == 0 && trims_newline && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void skip_comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) {
      error(tag, "missing end of comment tag");
    }
    const char sign = end > at_ ? sign_at(end - 1) : '\0';
    at_ = end + 2;
    end_tag(sign, true);
  }

  // {% raw %} ... {% endraw %}: the only tag the parser never sees.
  bool lex_raw(std::size_t tag) {
    std::size_t at = at_ + space_at(at_);
    if (std::string_view(source_).substr(at, 3) != "raw") {
      return false;
    }
    at += 3;
    at += space_at(at);
    const bool minus = at < source_.size() && source_[at] == '-';
    at += minus ? 1 : 0;
    if (std::string_view(source_).substr(at, 2) != "%}") {
      return false;
    }
    at_ = at + 2;
    if (minus) {
      at_ += space_at(at_);
    }
    line_starting_ = source_[at_ - 1] == '\n';
    for (std::size_t end = source_.find("{%", at_); end != std::string::npos;
         end = source_.find("{%", end + 2)) {
      if (end_raw(end)) {
        return true;
      }
    }
    error(tag, "missing end of raw directive");
  }

  bool end_raw(std::size_t tag) {
    const char sign = sign_at(tag + 2);
    std::size_t at = tag + 2 + (sign != 0 ? 1 : 0);
    at += space_at(at);
    if (std::string_view(source_).substr(at, 6) != "endraw") {
      return false;
    }
    at += 6;
    at += space_at(at);
    const char closing = sign_at(at);
    at += closing != 0 ? 1 : 0;
    if (std::string_view(source_).substr(at, 2) != "%}") {
      return false;
    }
    add_data(at_, tag, sign, true);
    at_ = at + 2;
    end_tag(closing, true);
    return true;
  }

  // Expression tokens up to the closing of the tag. Inside brackets a closing is an operator.
  void lex_code(std::string_view closing, TokenKind end_kind, std::size_t tag) {
    std::vector<std::pair<char, std::size_t>> brackets;
    while (at_ < source_.size()) {
      if (brackets.empty()) {
        char sign = sign_at(at_);
        sign = sign == '+' && end_kind == TokenKind::kVariableEnd ? '\0' : sign;
        if (rest().substr(sign != 0 ? 1 : 0, 2) == closing) {
          add(end_kind, std::string(closing), at_);
          at_ += sign != 0 ? 3 : 2;
          return end_tag(sign, end_kind == TokenKind::kBlockEnd);
        }
      }
      if (const std::size_t blank = space_at(at_); blank > 0) {
        at_ += blank;
      } else if (!lex_number() && !lex_name() && !lex_string()) {
        lex_operator(brackets);
      }
    }
    if (!brackets.empty()) {
      error(brackets.back().second, fmt::format("'{}' is never closed", brackets.back().first));
    }
    error(tag, fmt::format("missing '{}'", closing));
  }

  std::size_t digits_at(std::size_t at) const {
    const std::size_t begin = at;
    while (at < source_.size() && (is_ascii_digit(source_[at]) ||
                                   (source_[at] == '_' && at > begin && source_[at - 1] != '_' &&
                                    at + 1 < source_.size() && is_ascii_digit(source_[at + 1])))) {
      ++at;
    }
    return at - begin;
  }

  bool lex_number() {
    if (!is_ascii_digit(source_[at_])) {
      return false;
    }
    if (lex_prefixed_integer()) {
      return true;
    }
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    std::size_t end = at_ + digits_at(at_);
    bool is_float = false;
    if (!after_dot) {
      if (end < source_.size() && source_[end] == '.' && digits_at(end + 1) > 0) {
        end += 1 + digits_at(end + 1);
        is_float = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        const std::size_t sign = sign_at(end + 1) != 0 ? 1 : 0;
        if (const std::size_t n = digits_at(end + 1 + sign); n > 0) {
          end += 1 + sign + n;
          is_float = true;
        }
      }
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits), at_);
    at_ = end;
    return true;
  }

  // 0x1F, 0o17, 0b11; the token keeps the prefix.
  bool lex_prefixed_integer() {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    if (source_[at_] != '0' || at_ + 2 >= source_.size()) {
      return false;
    }
    const char prefix = static_cast<char>(source_[at_ + 1] | 0x20);
    const std::size_t n_digits = prefix == 'x' ? 22 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    const std::string_view digits = kHex.substr(0, n_digits);
    std::size_t end = at_ + 2;
    while (end < source_.size() && digits.find(source_[end]) != std::string_view::npos) {
      ++end;
    }
    if (n_digits == 0 || end == at_ + 2) {
      return false;
    }
    add(TokenKind::kInteger, source_.substr(at_, end - at_), at_);
    at_ = end;
    return true;
  }

  bool lex_name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const Decoded decoded = decode_utf8(rest().substr(end - at_));
      if (!is_word(decoded.value)) {
        break;
      }
      end += static_cast<std::size_t>(decoded.length);
    }
    if (end == at_) {
      return false;
    }
    add(TokenKind::kName, source_.substr(at_, end - at_), at_);
    at_ = end;
    return true;
  }

  bool lex_string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') {
      return false;
    }
    const std::size_t begin = at_;
    std::string text;
    for (++at_; at_ < source_.size() && source_[at_] != quote;) {
      if (source_[at_] == '\\') {
        lex_escape(text);
      } else {
        text += source_[at_++];
      }
    }
    if (at_ >= source_.size()) {
      error(begin, "string is never closed");
    }
    ++at_;
    add(TokenKind::kString, std::move(text), begin);
    return true;
  }

  // Python's escapes; one that it does not know stays as written.
  void lex_escape(std::string& text) {
    constexpr std::string_view kNames = "abfnrtv\\'\"";
    constexpr std::string_view kBytes = "\a\b\f\n\r\t\v\\'\"";
    const std::size_t begin = at_++;
    if (at_ >= source_.size()) {
      error(begin, "string is never closed");
    }
    const char c = source_[at_];
    if (const std::size_t named = kNames.find(c); named != std::string_view::npos) {
      text += kBytes[named];
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      ++at_;
      append_escaped(text, begin, code_at(16, n_digits), n_digits);
    } else if (c >= '0' && c <= '7') {
      append_escaped(text, begin, code_at(8, 3), 0);
    } else if (c == 'N') {
      error(begin, "\\N{...} escapes are not supported");
    } else {
      text += '\\';
    }
  }

  struct Code {
    char32_t value = 0;
    std::size_t n_digits = 0;
  };
  Code code_at(unsigned base, std::size_t max_digits) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    Code code;
    while (code.n_digits < max_digits && at_ < source_.size()) {
      const char c = source_[at_];
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c;
      const std::size_t digit = kDigits.substr(0, base).find(lower);
      if (digit == std::string_view::npos) {
        break;
      }
      code.value = code.value * base + static_cast<char32_t>(digit);
      ++code.n_digits;
      ++at_;
    }
    return code;
  }

  void append_escaped(std::string& text, std::size_t begin, Code code, std::size_t want) {
    const bool surrogate = code.value >= 0xD800 && code.value <= 0xDFFF;
    if (code.n_digits < want || code.value > 0x10FFFF || surrogate) {
      error(begin, "escape is not a code point");
    }
    append_utf8(text, code.value);
  }

  void lex_operator(std::vector<std::pair<char, std::size_t>>& brackets) {
    for (std::string_view op : kOperators) {
      if (!starts_with(op)) {
        continue;
      }
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') {
        brackets.emplace_back(c, at_);
      } else if (c == ')' || c == ']' || c == '}') {
        const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (brackets.empty() || brackets.back().first != opening) {
          error(at_, fmt::format("unexpected '{}'", c));
        }
        brackets.pop_back();
      }
      add(TokenKind::kOperator, std::string(op), at_);
      at_ += op.size();
      return;
    }
    error(at_, fmt::format("unexpected character '{}'",
                           rest().substr(0, static_cast<std::size_t>(decode_utf8(rest()).length))));
  }

  std::string source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  // what comes next stands at the start of a line
  std::vector<Token> tokens_;
  // Where line_ and line_begin_ have been counted to.
  std::size_t located_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    throw SyntaxError{.message = fmt::format("expected at most {} bytes of template, found {}",
                                             kMaxSourceBytes, source.size()),
                      .line = 1,
                      .column = 1};
  }
  if (!is_utf8(source)) {
    throw SyntaxError{.message = "the template is not UTF-8", .line = 1, .column = 1};
  }
  return Lexer(normalized(source)).run();
}

}  // namespace godwit::chat::jinja
