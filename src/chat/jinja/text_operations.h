// Operations of Python's str that filters and methods share. All keep the marks byte for byte.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/text.h"
#include "chat/jinja/text_search.h"

namespace godwit::chat::jinja {

enum class Side { kLeft, kRight, kBoth };
// `characters`: what to strip; none: white space.
Text strip(Budget& budget, const Text& text, Side side, const Text* characters);

// At most `count` replacements; negative: all.
Text replace(Budget& budget, const Text& text, const Text& old, const Text& with,
             std::int64_t count);

// str.split and str.rsplit. No separator: at runs of white space. At most `limit` cuts; negative:
// all. Fails for an empty separator.
std::vector<Text> split(Budget& budget, const Text& text, const Text* separator, SearchFrom from,
                        std::int64_t limit);
enum class LineEnds { kDrop, kKeep };
std::vector<Text> split_lines(Budget& budget, const Text& text, LineEnds ends);

Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts);

enum class Case { kUpper, kLower, kSwap, kCapitalize, kTitle };
// kTitle is str.title: a new word begins after every character without case.
Text change_case(Budget& budget, const Text& text, Case to);
// The title filter: a new word begins only after white space and opening brackets.
Text title_filter(Budget& budget, const Text& text);

// Brought to `width` code points with `fill`; as many on the left as asked for.
enum class Align { kLeft, kRight, kCenter };
Text pad(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Align align);

// & < > ' " as HTML entities. Markup stays as it is; the result is markup.
Text html_escape(Budget& budget, const Text& text);

// Python's +: where one is markup, so is the result, and the other is escaped.
Text concatenate(Budget& budget, const Text& a, const Text& b);

Text reversed(Budget& budget, const Text& text);

}  // namespace godwit::chat::jinja
