#include <algorithm>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/percent_format.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja::filters {

namespace {

Text change(Runtime& runtime, const Value& input, const Arguments& arguments, Case to) {
  const Parameters p("case filter", arguments, {}, 0);
  return change_case(runtime.budget, to_text(runtime.budget, input), to);
}

Text spaces(Budget& budget, std::int64_t n) {
  return pad(budget, Text(), std::clamp<std::int64_t>(n, 0, 1 << 20), Text(" "), Align::kLeft);
}

// json.dumps takes a number of spaces or the text itself.
std::optional<Text> json_indent(Runtime& runtime, const Parameters& p, std::size_t index) {
  if (p.is_absent(index)) {
    return std::nullopt;
  }
  const Text* text = p.at(index).text();
  return text ? *text : spaces(runtime.budget, p.integer(index, 0));
}

}  // namespace

Value capitalize(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return change(runtime, input, arguments, Case::kCapitalize);
}

Value lower(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return change(runtime, input, arguments, Case::kLower);
}

Value upper(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return change(runtime, input, arguments, Case::kUpper);
}

Value title(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("title", arguments, {}, 0);
  return title_filter(runtime.budget, to_text(runtime.budget, input));
}

Value string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("string", arguments, {}, 0);
  return to_text(runtime.budget, input);
}

Value center(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("center", arguments, {"width"}, 0);
  return pad(runtime.budget, to_text(runtime.budget, input), p.integer(0, 80), Text(" "),
             Align::kCenter);
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("escape", arguments, {}, 0);
  return html_escape(runtime.budget, to_text(runtime.budget, input));
}

Value forceescape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("forceescape", arguments, {}, 0);
  return html_escape(runtime.budget, to_text(runtime.budget, input).as_markup(false));
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("safe", arguments, {}, 0);
  return to_text(runtime.budget, input).as_markup(true);
}

Value format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    raise("can't handle positional and keyword arguments at the same time");
  }
  const Text text = to_text(runtime.budget, input);
  if (arguments.named.empty()) {
    return percent_format(runtime.budget, text, make_tuple(runtime.budget, arguments.positional));
  }
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(make_text(name), value);
  }
  return percent_format(runtime.budget, text, make_dict(runtime.budget, std::move(entries)));
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("indent", arguments, {"width", "first", "blank"}, 0);
  Budget& budget = runtime.budget;
  const Text* given = p.get(0) ? p.at(0).text() : nullptr;
  const Text indention = given ? *given : spaces(budget, p.integer(0, 4));
  TextBuilder whole(budget);
  append_str(budget, whole, input);
  whole.append_plain("\n");  // so that a last line without text counts, as in jinja2
  const std::vector<Text> lines = split_lines(budget, whole.finish(), LineEnds::kDrop);
  TextBuilder out(budget);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.append_plain("\n");
    }
    if (i == 0 ? p.flag(1) : p.flag(2) || !lines[i].empty()) {
      out.append(indention);
    }
    out.append(lines[i]);
  }
  return out.finish().as_markup(input.text() && input.text()->is_markup());
}

Value replace_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"old", "new", "count"}, 2);
  Budget& budget = runtime.budget;
  return replace(budget, to_text(budget, input), to_text(budget, p.at(0)), to_text(budget, p.at(1)),
                 p.is_absent(2) ? -1 : p.integer(2, -1));
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("trim", arguments, {"chars"}, 0);
  return strip(runtime.budget, to_text(runtime.budget, input), Side::kBoth,
               p.is_absent(0) ? nullptr : &p.text(0));
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  Budget& budget = runtime.budget;
  Text text = to_text(budget, input);
  text.pay_to_count(budget);
  const Text end = p.get(2) ? p.text(2) : Text("...");
  const std::int64_t length = p.integer(0, 255);
  const std::int64_t leeway = p.is_absent(3) ? 5 : p.integer(3, 5);
  const auto end_length = static_cast<std::int64_t>(end.length());
  if (length < end_length || leeway < 0) {
    raise("truncate() expected a length of at least {} and a leeway that is not negative",
          end_length);
  }
  const auto size = static_cast<std::int64_t>(text.length());
  if (size <= length || size - length <= leeway) {
    return text;
  }
  const std::size_t cut = text.offset_of(static_cast<std::size_t>(length - end_length));
  Text kept = substring(budget, text, 0, cut);
  if (!p.flag(1)) {
    const Text space(" ");
    kept = split(budget, kept, &space, SearchFrom::kRight, 1).front();
  }
  return concatenate(budget, kept, end);
}

Value tojson(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style{.ensure_ascii = p.flag(0),
                  .indent = json_indent(runtime, p, 1),
                  .item_separator = Text(p.is_absent(1) ? ", " : ","),
                  .key_separator = Text(": "),
                  .sort_keys = p.flag(3)};
  if (!p.is_absent(2)) {
    const Sequence* s = p.at(2).sequence();
    if (!s || s->items.size() != 2 || !s->items[0].text() || !s->items[1].text()) {
      raise("tojson() expected separators to be two strings");
    }
    style.item_separator = *s->items[0].text();
    style.key_separator = *s->items[1].text();
  }
  return to_json(runtime.budget, input, style);
}

Value wordcount(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("wordcount", arguments, {}, 0);
  const Text text = to_text(runtime.budget, input);
  runtime.budget.scan(text.size());
  std::int64_t words = 0;
  bool in_word = false;
  for (CodePoints at = CodePoints(runtime.budget, text).start(); !at.done(); at.next()) {
    const bool word = is_word(at.value());
    words += word && !in_word ? 1 : 0;
    in_word = word;
  }
  return words;
}

}  // namespace godwit::chat::jinja::filters
