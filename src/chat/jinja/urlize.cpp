// The urlize filter: web and mail addresses in a text become links. jinja2 finds them by regular
// expressions; here the same is read off from left to right, in time that grows with the text.
#include <algorithm>
#include <array>
#include <set>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja::filters {

namespace {

// What a code point is where case does not matter: Python folds four letters into ASCII.
char32_t folded(char32_t c) {
  if (c >= 'A' && c <= 'Z') return c + ('a' - 'A');
  if (c == 0x130 || c == 0x131) return 'i';
  if (c == 0x17F) return 's';
  return c == 0x212A ? U'k' : c;
}

std::u32string code_points(std::string_view text, bool fold) {
  std::u32string out;
  while (!text.empty()) {
    const Decoded decoded = decode_utf8(text);
    out += fold ? folded(decoded.value) : decoded.value;
    text.remove_prefix(static_cast<std::size_t>(decoded.length));
  }
  return out;
}

bool is_host_character(char32_t c) { return is_word(c) || c == '%' || c == '-'; }
bool is_ascii_letter(char32_t c) { return c >= 'a' && c <= 'z'; }
bool is_hex(char32_t c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

// Whether nothing, or a port and a path, follow the host.
bool ends_host(std::u32string_view rest) {
  if (rest.starts_with(U':')) {
    std::size_t n = 1;
    while (n < rest.size() && n <= 5 && is_digit(rest[n])) ++n;
    if (n == 1) return false;
    rest.remove_prefix(n);
  }
  return rest.empty() || rest[0] == '/' || rest[0] == '?' || rest[0] == '#';
}

// The labels of a host: what dots separate.
std::vector<std::u32string_view> labels_of(std::u32string_view host) {
  std::vector<std::u32string_view> labels;
  for (std::size_t dot = 0; dot != std::u32string_view::npos;) {
    dot = host.find(U'.');
    labels.push_back(host.substr(0, dot));
    host.remove_prefix(dot == std::u32string_view::npos ? host.size() : dot + 1);
  }
  return labels;
}

std::u32string_view host_of(std::u32string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (is_host_character(text[n]) || text[n] == '.')) ++n;
  return text.substr(0, n);
}

// After a scheme or "www.": any labels, the last one a top-level domain.
bool is_named_host(std::u32string_view text) {
  const std::u32string_view host = host_of(text);
  const auto labels = labels_of(host);
  const std::u32string_view top = labels.back();
  const bool letters =
      top.size() >= 2 && top.size() <= 63 && std::all_of(top.begin(), top.end(), is_ascii_letter);
  const bool international =
      top.starts_with(U"xn--") && top.size() >= 6 && top.size() <= 63 &&
      std::all_of(top.begin() + 4, top.end(), [](char32_t c) { return is_word(c) || c == '%'; });
  return (letters || international) && ends_host(text.substr(host.size())) &&
         std::none_of(labels.begin(), labels.end(), [](auto label) { return label.empty(); });
}

// Without either: only the oldest top-level domains.
bool is_plain_domain(std::u32string_view text) {
  constexpr auto kTop = std::to_array<std::u32string_view>(
      {U"com", U"net", U"int", U"edu", U"gov", U"org", U"info", U"mil"});
  const std::u32string_view host = host_of(text);
  const auto labels = labels_of(host);
  return labels.size() >= 2 && std::ranges::find(kTop, labels.back()) != kTop.end() &&
         ends_host(text.substr(host.size())) &&
         std::all_of(labels.begin(), labels.end() - 1,
                     [](auto label) { return label.size() >= 2 && label.size() <= 63; });
}

bool is_ipv4_host(std::u32string_view text) {
  for (int part = 0; part < 4; ++part) {
    std::size_t n = 0;
    while (n < text.size() && n < 3 && is_digit(text[n])) ++n;
    if (n == 0) return false;
    text.remove_prefix(n);
    if (part < 3) {
      if (!text.starts_with(U'.')) return false;
      text.remove_prefix(1);
    }
  }
  return ends_host(text);
}

// [a:b:...]: two groups that end in a colon, then one to six that may.
bool is_ipv6_host(std::u32string_view text) {
  const std::size_t close = text.find(U']');
  if (!text.starts_with(U'[') || close == std::u32string_view::npos) return false;
  std::u32string_view inside = text.substr(1, close - 1);
  for (int group = 0; group < 8 && (group < 2 || !inside.empty()); ++group) {
    std::size_t n = 0;
    while (n < inside.size() && n < 4 && is_hex(inside[n])) ++n;
    const bool colon = n < inside.size() && inside[n] == ':';
    if (!colon && (group < 2 || n == 0)) return false;
    inside.remove_prefix(n + (colon ? 1 : 0));
  }
  return inside.empty() && ends_host(text.substr(close + 1));
}

bool is_web_address(std::u32string_view text) {
  for (const std::u32string_view scheme : {U"https://", U"http://"}) {
    if (text.starts_with(scheme)) {
      const std::u32string_view host = text.substr(scheme.size());
      if (is_named_host(host) || is_ipv4_host(host) || is_ipv6_host(host)) return true;
    }
  }
  return (text.starts_with(U"www.") && is_named_host(text.substr(4))) || is_plain_domain(text);
}

bool is_mail_address(std::u32string_view text) {
  const std::size_t at = text.rfind(U'@');
  if (at == std::u32string_view::npos || at == 0) return false;
  const std::u32string_view domain = text.substr(at + 1);
  const std::size_t dot = domain.rfind(U'.');
  if (dot == std::u32string_view::npos || dot == 0 || dot + 1 == domain.size()) return false;
  return is_word(domain[0]) &&
         std::all_of(domain.begin() + static_cast<std::ptrdiff_t>(dot) + 1, domain.end(),
                     is_word) &&
         std::all_of(domain.begin(), domain.end(),
                     [](char32_t c) { return is_word(c) || c == '.' || c == '-'; });
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++n;
  }
  return n;
}

// A word without the punctuation around it. Offsets into the text, in bytes.
struct Middle {
  std::size_t begin, end;
};

Middle middle_of(std::string_view text, Middle word) {
  const auto at = [&](std::size_t offset, std::string_view part) {
    return text.substr(offset, word.end - offset).starts_with(part);
  };
  std::size_t begin = word.begin;
  while (begin < word.end && (at(begin, "(") || at(begin, "<") || at(begin, "&lt;"))) {
    begin += at(begin, "&lt;") ? 4U : 1U;
  }
  std::size_t end = word.end;
  while (end > begin) {
    if (std::string_view(")>.,\n").find(text[end - 1]) != std::string_view::npos) {
      --end;
    } else if (end - begin >= 4 && text.substr(end - 4, 4) == "&gt;") {
      end -= 4;
    } else {
      break;
    }
  }
  // Brackets that the address opens belong to it, closed by what was taken off its end.
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
  for (const auto& [open, close] : kPairs) {
    const std::size_t opened = count(text.substr(begin, end - begin), open);
    if (opened <= count(text.substr(begin, end - begin), close)) continue;
    const std::size_t closes = count(text.substr(end, word.end - end), close);
    for (std::size_t i = 0; i < std::min(opened, closes); ++i) {
      end = text.find(close, end) + close.size();
    }
  }
  return {begin, end};
}

struct LinkStyle {
  std::string attributes;  // rel and target
  std::optional<std::int64_t> limit;
  std::vector<Text> schemes;
};

class Linker {
 public:
  Linker(Budget& budget, const Text& text, const LinkStyle& style)
      : budget_(budget), text_(text), style_(style), out_(budget) {}

  Text run() {
    std::size_t begin = 0;
    for (CodePoints at = CodePoints(budget_, text_).start(); !at.done(); at.next()) {
      if (!is_space(at.value())) continue;
      word({begin, at.begin()});
      out_.append(text_, at.begin(), at.end());
      begin = at.end();
    }
    word({begin, text_.size()});
    return out_.finish();
  }

 private:
  void word(Middle word) {
    budget_.scan((word.end - word.begin) * 16);  // what the matching looks at
    const Middle middle = middle_of(text_.view(), word);
    out_.append(text_, word.begin, middle.begin);
    link(middle);
    out_.append(text_, middle.end, word.end);
  }

  void link(Middle middle) {
    const std::string_view view = text_.view().substr(middle.begin, middle.end - middle.begin);
    const std::u32string exact = code_points(view, /*fold=*/false);
    if (is_web_address(code_points(view, /*fold=*/true))) {
      const bool scheme = view.starts_with("https://") || view.starts_with("http://");
      anchor(scheme ? "" : "https://", middle, style_.attributes, shortened(middle));
    } else if (view.starts_with("mailto:") &&
               is_mail_address(std::u32string_view(exact).substr(7))) {
      anchor("", middle, "", substring(budget_, text_, middle.begin + 7, middle.end));
    } else if (!view.starts_with("www.") && !view.starts_with("@") &&
               view.find(':') == std::string_view::npos && is_mail_address(exact)) {
      anchor("mailto:", middle, "", substring(budget_, text_, middle.begin, middle.end));
    } else if (const auto n = std::ranges::count_if(style_.schemes,
                                                    [&](const Text& scheme) {
                                                      return view != scheme.view() &&
                                                             view.starts_with(scheme.view());
                                                    });
               n == 1) {
      anchor("", middle, style_.attributes, substring(budget_, text_, middle.begin, middle.end));
    } else if (n > 1) {
      raise("urlize() expected extra_schemes of which one begins with no other");
    } else {
      out_.append(text_, middle.begin, middle.end);
    }
  }

  Text shortened(Middle middle) {
    const Text whole = substring(budget_, text_, middle.begin, middle.end);
    const auto length = static_cast<std::int64_t>(whole.length());
    if (!style_.limit || length <= *style_.limit) return whole;
    const std::int64_t kept =
        *style_.limit < 0 ? std::max<std::int64_t>(length + *style_.limit, 0) : *style_.limit;
    const std::size_t end = whole.offset_of(static_cast<std::size_t>(kept));
    return concatenate(budget_, substring(budget_, whole, 0, end), Text("..."));
  }

  void anchor(std::string_view prefix, Middle middle, std::string_view attributes,
              const Text& shown) {
    out_.append_plain("<a href=\"");
    out_.append_plain(prefix);
    out_.append(text_, middle.begin, middle.end);
    out_.append_plain("\"");
    out_.append_plain(attributes);
    out_.append_plain(">");
    out_.append(shown);
    out_.append_plain("</a>");
  }

  Budget& budget_;
  const Text& text_;
  const LinkStyle& style_;
  TextBuilder out_;
};

std::string attribute(Budget& budget, std::string_view name, const Text& value) {
  return value.empty() ? "" : fmt::format(" {}=\"{}\"", name, html_escape(budget, value).view());
}

// The words of rel, and those that are always there, once each and in order.
Text rel_words(Budget& budget, const Parameters& p) {
  std::set<std::string, std::less<>> words = {"noopener"};
  if (p.flag(1)) words.insert("nofollow");
  if (!p.is_absent(3)) {
    for (const Text& word : split(budget, p.text(3), nullptr, SearchFrom::kLeft, -1)) {
      words.emplace(word.view());
    }
  }
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return Text(joined);
}

// [\w.+-]{2,} : and up to two slashes.
bool is_scheme(std::string_view text) {
  std::size_t slashes = 0;
  for (; slashes < 2 && text.ends_with('/'); ++slashes) text.remove_suffix(1);
  if (!text.ends_with(':')) return false;
  text.remove_suffix(1);
  const std::u32string name = code_points(text, /*fold=*/false);
  return name.size() >= 2 && std::all_of(name.begin(), name.end(), [](char32_t c) {
           return is_word(c) || c == '.' || c == '+' || c == '-';
         });
}

}  // namespace

Value urlize(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("urlize", arguments,
                     {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 0);
  Budget& budget = runtime.budget;
  LinkStyle style;
  style.attributes = attribute(budget, "rel", rel_words(budget, p));
  if (!p.is_absent(2)) style.attributes += attribute(budget, "target", p.text(2));
  if (!p.is_absent(0)) style.limit = p.integer(0, 0);
  if (!p.is_absent(4)) {
    for (const Value& scheme : iterate(budget, p.at(4))) {
      if (!scheme.text() || !is_scheme(scheme.text()->view())) {
        raise("urlize() expected URI scheme prefixes in extra_schemes");
      }
      style.schemes.push_back(*scheme.text());
    }
  }
  const Text escaped = html_escape(budget, to_text(budget, input));
  return Linker(budget, escaped, style).run();
}

}  // namespace godwit::chat::jinja::filters
