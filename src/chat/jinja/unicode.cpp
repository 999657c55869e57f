#include "chat/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace godwit::chat::jinja {

namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Unicode's unconditional special casing: one code point becomes several. Sorted by the first.
struct Special {
  char32_t from;
  std::u32string_view upper;
  std::u32string_view title;
};
constexpr auto kSpecial = std::to_array<Special>({
    {0x00DF, U"SS", U"Ss"},
    {0x0149, U"\u02BCN", U"\u02BCN"},
    {0x01F0, U"J\u030C", U"J\u030C"},
    {0x0390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
    {0x03B0, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
    {0x0587, U"\u0535\u0552", U"\u0535\u0582"},
    {0x1E96, U"H\u0331", U"H\u0331"},
    {0x1E97, U"T\u0308", U"T\u0308"},
    {0x1E98, U"W\u030A", U"W\u030A"},
    {0x1E99, U"Y\u030A", U"Y\u030A"},
    {0xFB00, U"FF", U"Ff"},
    {0xFB01, U"FI", U"Fi"},
    {0xFB02, U"FL", U"Fl"},
    {0xFB03, U"FFI", U"Ffi"},
    {0xFB04, U"FFL", U"Ffl"},
    {0xFB05, U"ST", U"St"},
    {0xFB06, U"ST", U"St"},
});
static_assert(std::is_sorted(kSpecial.begin(), kSpecial.end(),
                             [](const Special& a, const Special& b) { return a.from < b.from; }));

const Special* special(char32_t c) {
  const auto* found = std::lower_bound(kSpecial.begin(), kSpecial.end(), c,
                                       [](const Special& s, char32_t key) { return s.from < key; });
  return found != kSpecial.end() && found->from == c ? found : nullptr;
}

void append_all(std::string& out, std::u32string_view text) {
  for (char32_t c : text) {
    append_utf8(out, c);
  }
}

}  // namespace

Decoded decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  utf8proc_int32_t value = -1;
  const auto length = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
  if (length < 1 || value < 0) {
    return {lead, 1, false};
  }
  return {static_cast<char32_t>(value), static_cast<int>(length), true};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded decoded = decode_utf8(text);
    if (!decoded.valid) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(decoded.length));
  }
  return true;
}

void append_utf8(std::string& out, char32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes.data());
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    out.push_back(static_cast<char>(bytes[static_cast<std::size_t>(i)]));
  }
}

bool is_space(char32_t c) {
  if (c < 0x80) {
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  }
  return c == 0x85 || category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }

bool is_word(char32_t c) {
  const auto k = category(c);
  return c == '_' || is_alpha(c) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
         k == UTF8PROC_CATEGORY_NO;
}

void append_upper(std::string& out, char32_t c) {
  if (const Special* s = special(c)) {
    return append_all(out, s->upper);
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x0130) {  // capital I with a dot above
    return append_all(out, U"i\u0307");
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& out, char32_t c) {
  if (const Special* s = special(c)) {
    return append_all(out, s->title);
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace godwit::chat::jinja
