#include "chat/jinja/text_operations.h"

#include <algorithm>

#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

// Byte offsets where code points begin, and the end.
std::vector<std::size_t> boundaries(Budget& budget, const Text& text) {
  budget.allocate((text.size() + 1) * sizeof(std::size_t));
  std::vector<std::size_t> out;
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    out.push_back(at.begin());
  }
  out.push_back(text.size());
  return out;
}

// Where the last code point of a text that is not empty begins.
std::size_t last_code_point(std::string_view text) {
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && continues(at)) {
    --at;
  }
  const auto length = static_cast<std::size_t>(decode_utf8(text.substr(at)).length);
  return at + length == text.size() ? at : text.size() - 1;
}

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_cased(char32_t c) {
  std::string upper;
  std::string lower;
  append_upper(upper, c);
  append_lower(lower, c);
  return upper != lower;
}

std::vector<Text> split_at_space(Budget& budget, const Text& text, std::int64_t limit) {
  std::vector<Text> out;
  std::size_t word = std::string_view::npos;
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    if (is_space(at.value())) {
      if (word != std::string_view::npos) {
        out.push_back(substring(budget, text, word, at.begin()));
        word = std::string_view::npos;
      }
    } else if (word == std::string_view::npos) {
      word = at.begin();
      if (limit >= 0 && out.size() >= static_cast<std::size_t>(limit)) {
        out.push_back(substring(budget, text, word, text.size()));
        return out;
      }
    }
    budget.step();
  }
  if (word != std::string_view::npos) {
    out.push_back(substring(budget, text, word, text.size()));
  }
  return out;
}

std::vector<Text> rsplit_at_space(Budget& budget, const Text& text, std::int64_t limit) {
  const std::vector<std::size_t> at = boundaries(budget, text);
  const auto space = [&](std::size_t i) {
    return is_space(decode_utf8(text.view().substr(at[i])).value);
  };
  std::vector<Text> out;
  std::size_t end = at.size() - 1;
  while (true) {
    for (; end > 0 && space(end - 1); --end) {
    }
    if (end == 0) {
      break;
    }
    if (limit >= 0 && out.size() >= static_cast<std::size_t>(limit)) {
      out.push_back(substring(budget, text, 0, at[end]));
      break;
    }
    std::size_t begin = end;
    for (; begin > 0 && !space(begin - 1); --begin) {
    }
    budget.step();
    out.push_back(substring(budget, text, at[begin], at[end]));
    end = begin;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> split_at(Budget& budget, const Text& text, std::string_view separator,
                           std::int64_t limit) {
  std::vector<Text> out;
  std::size_t begin = 0;
  TextSearch search(budget, text.view(), separator, SearchFrom::kLeft);
  while (limit < 0 || out.size() < static_cast<std::size_t>(limit)) {
    const std::size_t cut = search.next();
    if (cut == TextSearch::kNone) {
      break;
    }
    budget.allocate(sizeof(Text));
    out.push_back(substring(budget, text, begin, cut));
    begin = cut + separator.size();
  }
  out.push_back(substring(budget, text, begin, text.size()));
  return out;
}

std::vector<Text> rsplit_at(Budget& budget, const Text& text, std::string_view separator,
                            std::int64_t limit) {
  std::vector<Text> out;
  std::size_t end = text.size();
  TextSearch search(budget, text.view(), separator, SearchFrom::kRight);
  while (limit < 0 || out.size() < static_cast<std::size_t>(limit)) {
    const std::size_t cut = search.next();
    if (cut == TextSearch::kNone) {
      break;
    }
    budget.allocate(sizeof(Text));
    out.push_back(substring(budget, text, cut + separator.size(), end));
    end = cut;
  }
  out.push_back(substring(budget, text, 0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::string_view html_entity(char32_t c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return "";
  }
}

bool begins_title_word(char32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

}  // namespace

Text strip(Budget& budget, const Text& text, Side side, const Text* characters) {
  std::vector<char32_t> set;
  if (characters) {
    budget.allocate(characters->size() * sizeof(char32_t));
    for (CodePoints c = CodePoints(budget, *characters).start(); !c.done(); c.next()) {
      set.push_back(c.value());
    }
    std::sort(set.begin(), set.end());
  }
  const auto strips = [&](char32_t c) {
    return characters ? std::binary_search(set.begin(), set.end(), c) : is_space(c);
  };
  std::string_view rest = text.view();
  while (side != Side::kRight && !rest.empty() && strips(decode_utf8(rest).value)) {
    rest.remove_prefix(static_cast<std::size_t>(decode_utf8(rest).length));
    budget.step();
  }
  while (side != Side::kLeft && !rest.empty()) {
    const std::size_t last = last_code_point(rest);
    if (!strips(decode_utf8(rest.substr(last)).value)) {
      break;
    }
    rest = rest.substr(0, last);
    budget.step();
  }
  const auto begin = static_cast<std::size_t>(rest.data() - text.view().data());
  return substring(budget, text, begin, begin + rest.size());
}

Text replace(Budget& budget, const Text& text, const Text& old, const Text& with,
             std::int64_t count) {
  budget.scan(text.size());
  TextBuilder out(budget);
  TextSearch search(budget, text.view(), old.view(), SearchFrom::kLeft);
  std::size_t from = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    budget.step();
    if (old.empty()) {  // Python puts the new text before every code point and at the end
      out.append(with);
      if (from >= text.size()) {
        return out.finish();
      }
      const Decoded decoded = decode_utf8(text.view().substr(from));
      out.append(text, from, from + static_cast<std::size_t>(decoded.length));
      from += static_cast<std::size_t>(decoded.length);
      continue;
    }
    const std::size_t found = search.next();
    if (found == TextSearch::kNone) {
      break;
    }
    out.append(text, from, found);
    out.append(with);
    from = found + old.size();
  }
  out.append(text, from, text.size());
  return out.finish();
}

std::vector<Text> split(Budget& budget, const Text& text, const Text* separator, SearchFrom from,
                        std::int64_t limit) {
  budget.scan(text.size());
  if (!separator) {
    return from == SearchFrom::kLeft ? split_at_space(budget, text, limit)
                                     : rsplit_at_space(budget, text, limit);
  }
  if (separator->empty()) {
    raise("empty separator");
  }
  return from == SearchFrom::kLeft ? split_at(budget, text, separator->view(), limit)
                                   : rsplit_at(budget, text, separator->view(), limit);
}

std::vector<Text> split_lines(Budget& budget, const Text& text, LineEnds ends) {
  budget.scan(text.size());
  std::vector<Text> out;
  std::size_t begin = 0;
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    if (!is_line_end(at.value())) {
      continue;
    }
    const std::size_t end = at.begin();
    if (at.value() == '\r' && text.view().substr(at.end(), 1) == "\n") {
      at.next();
    }
    budget.allocate(sizeof(Text));
    out.push_back(substring(budget, text, begin, ends == LineEnds::kKeep ? at.end() : end));
    begin = at.end();
  }
  if (begin < text.size()) {
    out.push_back(substring(budget, text, begin, text.size()));
  }
  return out;
}

Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts) {
  TextBuilder out(budget);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    budget.step();
    if (i > 0) {
      out.append(separator);
    }
    out.append(parts[i]);
  }
  return out.finish();
}

Text change_case(Budget& budget, const Text& text, Case to) {
  TextBuilder out(budget);
  if (text.is_ascii() && (to == Case::kUpper || to == Case::kLower)) {
    out.append(text);
    return out.finish_mapped(to == Case::kUpper ? ascii_upper : ascii_lower)
        .as_markup(text.is_markup());
  }
  bool in_word = false;
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    const char32_t c = at.value();
    std::string changed;
    const bool starts = to == Case::kTitle ? !in_word : at.begin() == 0;
    if (to == Case::kUpper || (to == Case::kSwap && is_lower(c))) {
      append_upper(changed, c);
    } else if ((to == Case::kTitle || to == Case::kCapitalize) && starts) {
      append_title(changed, c);
    } else if (to != Case::kSwap || is_upper(c)) {
      append_lower(changed, c);
    } else {
      changed = at.bytes();
    }
    in_word = to == Case::kTitle && is_cased(c);
    out.append_as(changed, at.user());
  }
  return out.finish().as_markup(text.is_markup());
}

Text title_filter(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  bool starts = true;
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    std::string changed;
    starts ? append_upper(changed, at.value()) : append_lower(changed, at.value());
    starts = begins_title_word(at.value());
    out.append_as(changed, at.user());
  }
  return out.finish();
}

Text pad(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Align align) {
  text.pay_to_count(budget);
  const auto length = static_cast<std::int64_t>(text.length());
  if (fill.length() != 1) {
    raise("The fill character must be exactly one character long");
  }
  if (width <= length) {
    return text;
  }
  const std::int64_t missing = width - length;
  budget.step(static_cast<std::uint64_t>(missing) / 8);
  // str.center puts the odd one on the left where the width is odd.
  const std::int64_t left = align == Align::kLeft    ? 0
                            : align == Align::kRight ? missing
                                                     : missing / 2 + (missing & width & 1);
  TextBuilder out(budget);
  for (std::int64_t i = 0; i < left; ++i) {
    out.append(fill);
  }
  out.append(text);
  for (std::int64_t i = left; i < missing; ++i) {
    out.append(fill);
  }
  return out.finish().as_markup(text.is_markup());
}

Text html_escape(Budget& budget, const Text& text) {
  if (text.is_markup()) {
    return text;
  }
  TextBuilder out(budget);
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    const std::string_view entity = html_entity(at.value());
    out.append_as(entity.empty() ? at.bytes() : entity, at.user());
  }
  return out.finish().as_markup(true);
}

Text concatenate(Budget& budget, const Text& a, const Text& b) {
  const bool markup = a.is_markup() || b.is_markup();
  TextBuilder out(budget);
  out.append(markup ? html_escape(budget, a) : a);
  out.append(markup ? html_escape(budget, b) : b);
  return out.finish().as_markup(markup);
}

Text reversed(Budget& budget, const Text& text) {
  const std::vector<std::size_t> at = boundaries(budget, text);
  TextBuilder out(budget);
  for (std::size_t i = at.size() - 1; i > 0; --i) {
    out.append(text, at[i - 1], at[i]);
  }
  return out.finish().as_markup(text.is_markup());
}

}  // namespace godwit::chat::jinja
