// The wordwrap filter: what Python's textwrap makes of each line, without its regular expressions.
#include <algorithm>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja::filters {

namespace {

struct WrapStyle {
  std::size_t width = 79;  // code points
  bool break_long_words = true;
  bool split_at_hyphens = true;  // words into chunks
  bool keep_hyphens = true;      // a long word breaks after a hyphen where it has one
};

// Code points [begin, end) of the line.
struct Chunk {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

// textwrap knows ASCII white space only; anything else is part of a word.
bool is_gap(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_letter(char32_t c) { return is_word(c) && !is_digit(c); }
bool may_touch_dash(char32_t c) {
  return is_word(c) ||
         (c < 0x80 && c != 0 &&
          std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
}

// One line of the input, by code points.
class Line {
 public:
  Line(Budget& budget, const Text& text) : budget_(budget), text_(text) {
    budget.allocate((text.size() + 1) * (sizeof(char32_t) + sizeof(std::size_t)));
    for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
      points_.push_back(at.value());
      offsets_.push_back(at.begin());
    }
    offsets_.push_back(text.size());
  }

  void wrap(const WrapStyle& style, std::vector<Text>& out) {
    std::vector<Chunk> chunks = split(style);
    std::size_t next = 0;
    bool first_line = true;
    while (next < chunks.size()) {
      budget_.step();
      if (!first_line && is_blank(chunks[next])) {
        ++next;
      }
      // A line is a run of chunks, so it is the code points [begin, end).
      const std::size_t begin = next < chunks.size() ? chunks[next].begin : points_.size();
      std::size_t length = 0;
      Chunk last;  // what was taken last
      while (next < chunks.size() && length + chunks[next].size() <= style.width) {
        last = chunks[next++];
        length += last.size();
        budget_.step();
      }
      bool empty = length == 0;
      if (next < chunks.size() && chunks[next].size() > style.width) {
        if (style.break_long_words) {
          Chunk& word = chunks[next];
          last = {word.begin, word.begin + break_point(word, style.width - length, style)};
          word.begin = last.end;
          length += last.size();
          empty = false;
        } else if (empty) {
          last = chunks[next++];
          length += last.size();
          empty = false;
        }
      }
      if (!empty && is_blank(last)) {
        length -= last.size();
        empty = last.begin == begin;
      }
      if (!empty) {
        budget_.allocate(sizeof(Text));
        out.push_back(substring(budget_, text_, offsets_[begin], offsets_[begin + length]));
        first_line = false;
      }
    }
  }

 private:
  bool is(std::size_t at, bool (*kind)(char32_t)) const {
    return at < points_.size() && kind(points_[at]);
  }
  bool is_hyphen(std::size_t at) const { return at < points_.size() && points_[at] == '-'; }
  bool is_blank(Chunk chunk) const {
    return std::all_of(points_.begin() + static_cast<std::ptrdiff_t>(chunk.begin),
                       points_.begin() + static_cast<std::ptrdiff_t>(chunk.end), is_space);
  }

  // How many of a long word's code points still fit: up to the last hyphen that has something
  // else before it, where that is wanted.
  std::size_t break_point(Chunk word, std::size_t space, const WrapStyle& style) const {
    if (style.keep_hyphens) {
      for (std::size_t n = space; n > 1; --n) {
        if (!is_hyphen(word.begin + n - 1)) continue;
        const auto first = points_.begin() + static_cast<std::ptrdiff_t>(word.begin);
        const bool more = std::any_of(first, first + static_cast<std::ptrdiff_t>(n - 1),
                                      [](char32_t c) { return c != '-'; });
        return more ? n : space;
      }
    }
    return space;
  }

  // End of a run of at least two hyphens that a word follows; `at` where there is none.
  std::size_t dash_end(std::size_t at) const {
    std::size_t end = at;
    while (is_hyphen(end)) ++end;
    const bool touches = at > 0 && may_touch_dash(points_[at - 1]);
    return touches && end - at >= 2 && is(end, is_word) ? end : at;
  }

  // Whether a word may be cut after the hyphen at `at`: letters on both sides.
  bool cuts_at(std::size_t at) const {
    const bool before =
        at >= 2 && is(at - 1, is_letter) &&
        (is(at - 2, is_letter) || (at >= 3 && is_hyphen(at - 2) && is(at - 3, is_letter)));
    const bool after = is(at + 1, is_letter) &&
                       (is(at + 2, is_letter) || (is_hyphen(at + 2) && is(at + 3, is_letter)));
    return before && after;
  }

  std::size_t word_end(std::size_t begin, const WrapStyle& style) const {
    std::size_t end = begin + 1;
    for (; end < points_.size() && !is_gap(points_[end]); ++end) {
      if (!style.split_at_hyphens || !is_hyphen(end)) continue;
      if (cuts_at(end)) return end + 1;
      if (dash_end(end) != end) return end;
    }
    return end;
  }

  std::vector<Chunk> split(const WrapStyle& style) const {
    std::vector<Chunk> chunks;
    for (std::size_t at = 0; at < points_.size();) {
      std::size_t end = at;
      while (is(end, is_gap)) ++end;
      if (end == at && style.split_at_hyphens) end = dash_end(at);
      if (end == at) end = word_end(at, style);
      budget_.allocate(sizeof(Chunk));
      chunks.push_back({at, end});
      at = end;
    }
    return chunks;
  }

  Budget& budget_;
  const Text& text_;
  std::vector<char32_t> points_;
  std::vector<std::size_t> offsets_;  // in bytes; one more than points_
};

}  // namespace

Value wordwrap(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("wordwrap", arguments,
                     {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0);
  Budget& budget = runtime.budget;
  if (!input.text()) {
    raise("wordwrap() expected a str, found {}", type_name(input));
  }
  const std::int64_t width = p.integer(0, 79);
  const bool hyphens = !p.get(3) || p.flag(3);
  const WrapStyle style{.width = static_cast<std::size_t>(std::max<std::int64_t>(width, 0)),
                        .break_long_words = !p.get(1) || p.flag(1),
                        .split_at_hyphens = !p.get(3) || (hyphens && p.at(3).is<bool>()),
                        .keep_hyphens = hyphens};
  const Text between = p.is_absent(2) ? Text("\n") : p.text(2);
  std::vector<Text> paragraphs;
  for (const Text& line : split_lines(budget, *input.text(), LineEnds::kDrop)) {
    if (width <= 0) {
      raise("invalid width {} (must be > 0)", width);
    }
    std::vector<Text> wrapped;
    Line(budget, line).wrap(style, wrapped);
    paragraphs.push_back(join(budget, between, wrapped));
  }
  return join(budget, between, paragraphs);
}

}  // namespace godwit::chat::jinja::filters
