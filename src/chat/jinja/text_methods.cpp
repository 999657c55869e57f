#include "chat/jinja/text_methods.h"

#include <algorithm>
#include <array>

#include "chat/jinja/brace_format.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

Value list_of(Budget& budget, std::vector<Text> parts) {
  budget.allocate(parts.size() * sizeof(Value));
  return make_list(budget, std::vector<Value>(parts.begin(), parts.end()));
}

Value tuple_of(Budget& budget, std::initializer_list<Text> parts) {
  return make_tuple(budget, std::vector<Value>(parts.begin(), parts.end()));
}

template <Case to>
Value cased(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("case method", arguments, {}, 0);
  return change_case(runtime.budget, self, to);
}

template <Side side>
Value stripped(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("strip", arguments, {""}, 0);
  return strip(runtime.budget, self, side, p.is_absent(0) ? nullptr : &p.text(0));
}

template <SearchFrom from>
Value split_method(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("split", arguments, {"sep", "maxsplit"}, 0);
  return list_of(runtime.budget, split(runtime.budget, self, p.is_absent(0) ? nullptr : &p.text(0),
                                       from, p.integer(1, -1)));
}

Value splitlines(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("splitlines", arguments, {"keepends"}, 0);
  return list_of(runtime.budget,
                 split_lines(runtime.budget, self, p.flag(0) ? LineEnds::kKeep : LineEnds::kDrop));
}

template <SearchFrom from>
Value partition(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("partition", arguments, {""}, 1);
  const std::vector<Text> parts = split(runtime.budget, self, &p.text(0), from, 1);
  if (parts.size() == 2) {
    return tuple_of(runtime.budget, {parts[0], p.text(0), parts[1]});
  }
  return from == SearchFrom::kLeft ? tuple_of(runtime.budget, {self, Text(), Text()})
                                   : tuple_of(runtime.budget, {Text(), Text(), self});
}

// The part of a text that the optional start and end arguments name, in bytes.
struct Part {
  std::size_t begin = 0, end = 0;
  bool inside = true;  // false: start lies behind the end
};

Part part_of(Runtime& runtime, const Text& self, const Parameters& p) {
  runtime.budget.scan(self.size());
  self.pay_to_count(runtime.budget);
  if (p.is_absent(1) && p.is_absent(2)) {
    return {0, self.size(), true};
  }
  const auto size = static_cast<std::int64_t>(self.length());
  const auto place = [&](std::size_t index, std::int64_t absent) {
    const std::int64_t at = p.is_absent(index) ? absent : p.integer(index, absent);
    return at < 0 ? std::max<std::int64_t>(at + size, 0) : at;
  };
  const std::int64_t begin = place(1, 0);
  const std::int64_t end = std::min(place(2, size), size);
  if (begin > end) {
    return {0, 0, false};
  }
  return {self.offset_of(static_cast<std::size_t>(begin)),
          self.offset_of(static_cast<std::size_t>(end)), true};
}

enum class Absent { kMinusOne, kError };
template <SearchFrom from, Absent absent>
Value find_method(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("find", arguments, {"", "", ""}, 1);
  const Part part = part_of(runtime, self, p);
  const std::string_view inside = self.view().substr(part.begin, part.end - part.begin);
  const std::string_view wanted = p.text(0).view();
  const std::size_t found = find_text(runtime.budget, inside, wanted, from);
  if (part.inside && found != TextSearch::kNone) {
    return static_cast<std::int64_t>(self.index_of(part.begin + found));
  }
  if (absent == Absent::kError) {
    raise("substring not found");
  }
  return std::int64_t{-1};
}

Value count(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"", "", ""}, 1);
  const Part part = part_of(runtime, self, p);
  const std::string_view inside = self.view().substr(part.begin, part.end - part.begin);
  const std::string_view wanted = p.text(0).view();
  if (!part.inside) {
    return std::int64_t{0};
  }
  if (wanted.empty()) {
    return static_cast<std::int64_t>(Text(inside).length()) + 1;
  }
  std::int64_t n = 0;
  TextSearch search(runtime.budget, inside, wanted, SearchFrom::kLeft);
  while (search.next() != TextSearch::kNone) ++n;
  return n;
}

enum class End { kStart, kEnd };
template <End which>
Value has_affix(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("startswith", arguments, {"", "", ""}, 1);
  const Part part = part_of(runtime, self, p);
  const std::string_view inside = self.view().substr(part.begin, part.end - part.begin);
  const auto matches = [&](const Value& affix) {
    const Text* text = affix.text();
    if (!text) {
      raise("{} first arg must be str or a tuple of str, not {}",
            which == End::kStart ? "startswith" : "endswith", type_name(affix));
    }
    runtime.budget.scan(std::min(inside.size(), text->size()));
    return part.inside && (which == End::kStart ? inside.starts_with(text->view())
                                                : inside.ends_with(text->view()));
  };
  const Sequence* several = p.at(0).sequence();
  if (several && several->kind == SequenceKind::kTuple) {
    return std::any_of(several->items.begin(), several->items.end(), matches);
  }
  return matches(p.at(0));
}

Value removeprefix(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("removeprefix", arguments, {""}, 1);
  const std::string_view prefix = p.text(0).view();
  runtime.budget.scan(prefix.size());
  return self.view().starts_with(prefix)
             ? substring(runtime.budget, self, prefix.size(), self.size())
             : self;
}

Value removesuffix(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("removesuffix", arguments, {""}, 1);
  const std::string_view suffix = p.text(0).view();
  runtime.budget.scan(suffix.size());
  return self.view().ends_with(suffix)
             ? substring(runtime.budget, self, 0, self.size() - suffix.size())
             : self;
}

Value replace_method(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"", "", "count"}, 2);
  const Text with = self.is_markup() ? html_escape(runtime.budget, p.text(1)) : p.text(1);
  return replace(runtime.budget, self, p.text(0), with, p.integer(2, -1))
      .as_markup(self.is_markup());
}

Value join_method(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("join", arguments, {""}, 1);
  std::vector<Text> parts;
  for (const Value& item : iterate(runtime.budget, p.at(0))) {
    if (!item.text()) {
      raise("sequence item {}: expected str instance, {} found", parts.size(), type_name(item));
    }
    parts.push_back(self.is_markup() ? html_escape(runtime.budget, *item.text()) : *item.text());
  }
  return join(runtime.budget, self, parts).as_markup(self.is_markup());
}

template <Align align>
Value justified(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("justify", arguments, {"", ""}, 1);
  return pad(runtime.budget, self, p.integer(0, 0), p.get(1) ? p.text(1) : Text(" "), align);
}

Value zfill(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("zfill", arguments, {""}, 1);
  const bool sign = self.view().starts_with('-') || self.view().starts_with('+');
  const std::size_t head = sign ? 1 : 0;
  const Text digits = substring(runtime.budget, self, head, self.size());
  const std::int64_t width = std::max<std::int64_t>(p.integer(0, 0), 0) - (sign ? 1 : 0);
  return join(runtime.budget, Text(),
              {substring(runtime.budget, self, 0, head),
               pad(runtime.budget, digits, width, Text("0"), Align::kRight)});
}

Value format_method(Runtime& runtime, const Text& self, const Arguments& arguments) {
  return brace_format(runtime, self, arguments);
}

Value expandtabs(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("expandtabs", arguments, {"tabsize"}, 0);
  const std::int64_t size = std::clamp<std::int64_t>(p.integer(0, 8), 0, 1024);
  TextBuilder out(runtime.budget);
  std::int64_t column = 0;
  for (CodePoints at = CodePoints(runtime.budget, self).start(); !at.done(); at.next()) {
    if (at.value() == '\t') {
      const std::int64_t n = size > 0 ? size - column % size : 0;
      out.append_as(std::string(static_cast<std::size_t>(n), ' '), at.user());
      column += n;
    } else {
      out.append(self, at.begin(), at.end());
      column = at.value() == '\n' || at.value() == '\r' ? 0 : column + 1;
    }
  }
  return out.finish();
}

// str.isdigit and its like: true where the text is not empty and every code point is so.
template <bool (*predicate)(char32_t)>
Value all_are(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("predicate", arguments, {}, 0);
  runtime.budget.scan(self.size());
  for (CodePoints at = CodePoints(runtime.budget, self).start(); !at.done(); at.next()) {
    if (!predicate(at.value())) {
      return false;
    }
  }
  return !self.empty();
}

bool is_alphanumeric(char32_t c) { return c != '_' && is_word(c); }

Value isascii(Runtime&, const Text& self, const Arguments& arguments) {
  const Parameters p("isascii", arguments, {}, 0);
  return self.is_ascii();
}

template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Value has_case(Runtime& runtime, const Text& self, const Arguments& arguments) {
  const Parameters p("case predicate", arguments, {}, 0);
  runtime.budget.scan(self.size());
  bool found = false;
  for (CodePoints at = CodePoints(runtime.budget, self).start(); !at.done(); at.next()) {
    if (other(at.value())) {
      return false;
    }
    found |= wanted(at.value());
  }
  return found;
}

using MethodFunction = Value (*)(Runtime&, const Text&, const Arguments&);
struct MethodRow {
  std::string_view name;
  MethodFunction function;
};

constexpr auto kMethods = std::to_array<MethodRow>({
    {"capitalize", cased<Case::kCapitalize>},
    {"casefold", cased<Case::kLower>},
    {"center", justified<Align::kCenter>},
    {"count", count},
    {"endswith", has_affix<End::kEnd>},
    {"expandtabs", expandtabs},
    {"find", find_method<SearchFrom::kLeft, Absent::kMinusOne>},
    {"format", format_method},
    {"index", find_method<SearchFrom::kLeft, Absent::kError>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", isascii},
    {"isdecimal", all_are<is_digit>},
    {"isdigit", all_are<is_digit>},
    {"islower", has_case<is_lower, is_upper>},
    {"isnumeric", all_are<is_digit>},
    {"isspace", all_are<is_space>},
    {"isupper", has_case<is_upper, is_lower>},
    {"join", join_method},
    {"ljust", justified<Align::kLeft>},
    {"lower", cased<Case::kLower>},
    {"lstrip", stripped<Side::kLeft>},
    {"partition", partition<SearchFrom::kLeft>},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace_method},
    {"rfind", find_method<SearchFrom::kRight, Absent::kMinusOne>},
    {"rindex", find_method<SearchFrom::kRight, Absent::kError>},
    {"rjust", justified<Align::kRight>},
    {"rpartition", partition<SearchFrom::kRight>},
    {"rsplit", split_method<SearchFrom::kRight>},
    {"rstrip", stripped<Side::kRight>},
    {"split", split_method<SearchFrom::kLeft>},
    {"splitlines", splitlines},
    {"startswith", has_affix<End::kStart>},
    {"strip", stripped<Side::kBoth>},
    {"swapcase", cased<Case::kSwap>},
    {"title", cased<Case::kTitle>},
    {"upper", cased<Case::kUpper>},
    {"zfill", zfill},
});
constexpr bool by_name(const MethodRow& a, const MethodRow& b) { return a.name < b.name; }
static_assert(std::is_sorted(kMethods.begin(), kMethods.end(), by_name));

const MethodRow* find_row(std::string_view name) {
  const auto* row =
      std::lower_bound(kMethods.begin(), kMethods.end(), MethodRow{name, nullptr}, by_name);
  return row != kMethods.end() && row->name == name ? row : nullptr;
}

}  // namespace

bool text_method_exists(std::string_view name) { return find_row(name) != nullptr; }

Value call_text_method(Runtime& runtime, const Text& self, std::string_view name,
                       const Arguments& arguments) {
  const MethodRow* row = find_row(name);
  if (!row) {
    raise("'str' object has no method {}", quoted(name));
  }
  return row->function(runtime, self, arguments);
}

}  // namespace godwit::chat::jinja
