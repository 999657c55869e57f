// Filters that make or take apart XML, HTML and URLs.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja::filters {

namespace {

// HTML's names for U+00A0 to U+00FF, in that order. They count without a semicolon too.
constexpr auto kLatin = std::to_array<std::string_view>(
    {"nbsp",   "iexcl",  "cent",   "pound",  "curren", "yen",    "brvbar", "sect",   "uml",
     "copy",   "ordf",   "laquo",  "not",    "shy",    "reg",    "macr",   "deg",    "plusmn",
     "sup2",   "sup3",   "acute",  "micro",  "para",   "middot", "cedil",  "sup1",   "ordm",
     "raquo",  "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc",  "Atilde",
     "Auml",   "Aring",  "AElig",  "Ccedil", "Egrave", "Eacute", "Ecirc",  "Euml",   "Igrave",
     "Iacute", "Icirc",  "Iuml",   "ETH",    "Ntilde", "Ograve", "Oacute", "Ocirc",  "Otilde",
     "Ouml",   "times",  "Oslash", "Ugrave", "Uacute", "Ucirc",  "Uuml",   "Yacute", "THORN",
     "szlig",  "agrave", "aacute", "acirc",  "atilde", "auml",   "aring",  "aelig",  "ccedil",
     "egrave", "eacute", "ecirc",  "euml",   "igrave", "iacute", "icirc",  "iuml",   "eth",
     "ntilde", "ograve", "oacute", "ocirc",  "otilde", "ouml",   "divide", "oslash", "ugrave",
     "uacute", "ucirc",  "uuml",   "yacute", "thorn",  "yuml"});
static_assert(kLatin.size() == 96);

struct Named {
  std::string_view name;
  char32_t value;
};
constexpr auto kOthers = std::to_array<Named>({{"amp", '&'},
                                               {"AMP", '&'},
                                               {"lt", '<'},
                                               {"LT", '<'},
                                               {"gt", '>'},
                                               {"GT", '>'},
                                               {"quot", '"'},
                                               {"QUOT", '"'},
                                               {"COPY", 0xA9},
                                               {"REG", 0xAE}});
// These need their semicolon.
constexpr auto kClosed = std::to_array<Named>({{"apos", '\''},
                                               {"bull", 0x2022},
                                               {"euro", 0x20AC},
                                               {"hellip", 0x2026},
                                               {"ldquo", 0x201C},
                                               {"lsquo", 0x2018},
                                               {"mdash", 0x2014},
                                               {"ndash", 0x2013},
                                               {"rdquo", 0x201D},
                                               {"rsquo", 0x2019},
                                               {"trade", 0x2122}});
// What the numbers 0x80 to 0x9F mean: Windows' code page 1252; 0: themselves.
constexpr auto kWindows = std::to_array<char32_t>(
    {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
     0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
     0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178});
static_assert(kWindows.size() == 32);

template <class Rows>
std::optional<char32_t> find_named(const Rows& rows, std::string_view name) {
  const auto* row = std::ranges::find(rows, name, &Named::name);
  return row != rows.end() ? std::optional(row->value) : std::nullopt;
}

std::optional<char32_t> open_reference(std::string_view name) {
  if (const auto* found = std::ranges::find(kLatin, name); found != kLatin.end()) {
    return 0xA0 + static_cast<char32_t>(found - kLatin.begin());
  }
  return find_named(kOthers, name);
}

// The text of &#number; as HTML reads it. "" for what is no character.
std::string numbered(std::string_view digits, int base) {
  std::uint32_t value = 0x110000;  // what does not fit is out of range
  std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  char32_t c = value;
  if (c >= 0x80 && c < 0xA0 && kWindows[c - 0x80] != 0) c = kWindows[c - 0x80];
  if (c == 0 || (c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) c = 0xFFFD;
  const bool control = (c >= 1 && c < 9) || c == 0xB || (c >= 0xE && c < 0x20) || c == 0x7F;
  const bool reserved = (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
  std::string out;
  if (!control && !reserved) append_utf8(out, c);
  return out;
}

struct Reference {
  std::string text;
  std::size_t length = 0;  // bytes that it takes the place of; 0: none here
};

Reference numeric_reference(std::string_view text) {
  const bool hex = text.substr(2, 1) == "x" || text.substr(2, 1) == "X";
  const std::size_t begin = hex ? 3 : 2;
  const std::string_view kDigits = hex ? "0123456789abcdefABCDEF" : "0123456789";
  std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
  if (begin >= text.size() || end == begin) return {};
  std::string value = numbered(text.substr(begin, end - begin), hex ? 16 : 10);
  return {std::move(value), end + (text.substr(end, 1) == ";" ? 1 : 0)};
}

// What the text, which begins with "&", stands for. HTML's longest known name wins.
Reference reference(std::string_view text) {
  constexpr std::size_t kLongestName = 32;
  if (text.substr(1, 1) == "#") return numeric_reference(text);
  std::size_t end = 1;
  while (end < text.size() && end <= kLongestName && text[end] > 0 &&
         std::isalnum(static_cast<unsigned char>(text[end])) != 0) {
    ++end;
  }
  const std::string_view name = text.substr(1, end - 1);
  const bool closed = text.substr(end, 1) == ";";
  std::optional<char32_t> found = open_reference(name);
  if (!found && closed) found = find_named(kClosed, name);
  if (!found && closed && !name.empty()) {
    // HTML has two thousand more: better no answer than one that differs.
    raise("striptags() does not know the character reference '&{};'", name);
  }
  if (found) {
    std::string value;
    append_utf8(value, *found);
    return {std::move(value), end + (closed ? 1 : 0)};
  }
  for (std::size_t length = name.size(); length > 1; --length) {
    if (const auto shorter = open_reference(name.substr(0, length - 1))) {
      std::string value;
      append_utf8(value, *shorter);
      return {std::move(value), length};
    }
  }
  return {};
}

Text without_references(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  for (std::size_t at = 0; at < view.size();) {
    const std::size_t amp = std::min(view.find('&', at), view.size());
    out.append(text, at, amp);
    if (amp == view.size()) break;
    budget.step();
    const Reference found = reference(view.substr(amp));
    const bool user = Text(substring(budget, text, amp, amp + 1)).has_marks();
    out.append_as(found.length > 0 ? std::string_view(found.text) : "&", user);
    at = amp + std::max<std::size_t>(found.length, 1);
  }
  return out.finish();
}

Text without_tags(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  const std::string_view view = text.view();
  std::size_t at = 0;
  while (true) {
    const std::size_t open = view.find('<', at);
    if (open == std::string_view::npos) break;
    const bool comment = view.substr(open).starts_with("<!--");
    const std::size_t close = comment ? view.find("-->", open + 4) : view.find('>', open);
    if (close == std::string_view::npos) break;
    budget.step();
    out.append(text, at, open);
    at = close + (comment ? 3 : 1);
  }
  out.append(text, at, text.size());
  return out.finish();
}

enum class Slash { kKept, kCoded };

// Percent-encoding. In a query, a space is a plus.
void append_quoted(Budget& budget, TextBuilder& out, const Text& text, Slash slash) {
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    const char32_t c = at.value();
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' ||
                       (c == '/' && slash == Slash::kKept);
    std::string coded;
    for (const char byte : at.bytes()) {
      coded +=
          plain ? std::string(1, byte)
                : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
    out.append_as(c == ' ' && slash == Slash::kCoded ? "+" : coded, at.user());
  }
}

}  // namespace

Value striptags(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("striptags", arguments, {}, 0);
  Budget& budget = runtime.budget;
  const Text text = to_text(budget, input);
  budget.scan(text.size());
  const std::vector<Text> words =
      split(budget, without_tags(budget, text), nullptr, SearchFrom::kLeft, -1);
  return without_references(budget, join(budget, Text(" "), words));
}

Value xmlattr(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("xmlattr", arguments, {"autospace"}, 0);
  Budget& budget = runtime.budget;
  if (!input.dict()) {
    raise("xmlattr() expected a mapping, found {}", type_name(input));
  }
  const bool space_first = !p.get(0) || p.flag(0);
  TextBuilder out(budget);
  for (const auto& [key, value] : input.dict()->entries) {
    budget.step();
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.text() ||
        key.text()->view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      raise("Invalid character in attribute name: {}", quoted(to_text(budget, key).view()));
    }
    out.append_plain(out.size() > 0 || space_first ? " " : "");
    out.append(html_escape(budget, *key.text()));
    out.append_plain("=\"");
    out.append(html_escape(budget, to_text(budget, value)));
    out.append_plain("\"");
  }
  return out.finish();
}

Value urlencode(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("urlencode", arguments, {}, 0);
  Budget& budget = runtime.budget;
  TextBuilder out(budget);
  if (input.text() || !is_iterable(input)) {
    append_quoted(budget, out, to_text(budget, input), Slash::kKept);
    return out.finish();
  }
  std::vector<Value> pairs;
  if (const Dict* dict = input.dict()) {
    for (const auto& [key, value] : dict->entries) {
      pairs.push_back(make_tuple(budget, {key, value}));
    }
  } else {
    pairs = iterate(budget, input);
  }
  for (const Value& pair : pairs) {
    const std::vector<Value> sides = iterate(budget, pair);
    if (sides.size() != 2) {
      raise("urlencode() expected pairs, found {} values", sides.size());
    }
    out.append_plain(out.size() > 0 ? "&" : "");
    append_quoted(budget, out, to_text(budget, sides[0]), Slash::kCoded);
    out.append_plain("=");
    append_quoted(budget, out, to_text(budget, sides[1]), Slash::kCoded);
  }
  return out.finish();
}

}  // namespace godwit::chat::jinja::filters
