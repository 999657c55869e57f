// What Python knows about code points, as far as templates ask: white space, case, printability.
// Case tables are utf8proc's; the few mappings to more than one code point are listed here.
#pragma once

#include <string>
#include <string_view>

namespace godwit::chat::jinja {

struct Decoded {
  char32_t value = 0;
  int length = 0;  // bytes; 1 for a byte that is not UTF-8
  bool valid = true;
};

// The code point at the front of a text that is not empty.
Decoded decode_utf8(std::string_view text);
bool is_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t code_point);

bool is_space(char32_t c);      // str.isspace
bool is_line_end(char32_t c);   // where str.splitlines cuts
bool is_alpha(char32_t c);      // str.isalpha
bool is_digit(char32_t c);      // str.isdigit: decimal digits
bool is_printable(char32_t c);  // what repr leaves as it is
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_word(char32_t c);  // \w of Python's re

void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);

}  // namespace godwit::chat::jinja
