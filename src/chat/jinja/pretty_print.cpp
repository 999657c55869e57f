// The pprint filter: Python's pprint.pformat with its defaults, 80 columns, keys in order.
#include <algorithm>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/merge_sort.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja::filters {

namespace {

constexpr std::int64_t kColumns = 80;

using Entries = std::vector<std::pair<Value, Value>>;

// Numbers and texts in their order; whatever cannot be compared, by the names of the types.
bool key_less(Budget& budget, const Value& a, const Value& b) {
  budget.step();
  const bool comparable = (a.text() && b.text()) || (as_number(a) && as_number(b));
  return comparable ? compare(budget, CompareOp::kLess, a, b) : type_name(a) < type_name(b);
}

Entries sorted_entries(Budget& budget, const Dict& dict) {
  budget.allocate(dict.entries.size() * 4 * sizeof(Value));
  Entries entries = dict.entries;
  merge_sort(entries,
             [&](const auto& a, const auto& b) { return key_less(budget, a.first, b.first); });
  return entries;
}

class PrettyPrinter {
 public:
  explicit PrettyPrinter(Budget& budget) : budget_(budget), out_(budget) {}

  Text print(const Value& value) {
    format(value, {.indent = 0, .allowance = 0, .level = 0});
    return out_.finish();
  }

 private:
  // Columns taken on the left, and on the right by what follows the value.
  struct Place {
    std::int64_t indent;
    std::int64_t allowance;
    int level;
  };

  void format(const Value& value, Place place) {
    const Budget::Level nested(budget_);
    const Text flat = repr(value);
    if (static_cast<std::int64_t>(flat.length()) <= kColumns - place.indent - place.allowance) {
      return out_.append(flat);
    }
    const Sequence* s = value.sequence();
    ++place.level;
    if (const Dict* dict = value.dict()) {
      format_dict(*dict, place);
    } else if (s && s->kind == SequenceKind::kList) {
      format_items(s->items, place, "[", "]");
    } else if (s && s->kind == SequenceKind::kTuple && !s->is_group) {
      format_items(s->items, place, "(", s->items.size() == 1 ? ",)" : ")");
    } else if (value.text() && !value.text()->is_markup() && !value.text()->empty()) {
      format_text(*value.text(), place);
    } else {
      out_.append(flat);
    }
  }

  // On one line, with the keys in order.
  Text repr(const Value& value) {
    TextBuilder flat(budget_);
    append_flat(flat, value);
    return flat.finish();
  }

  void append_flat(TextBuilder& flat, const Value& value) {
    const Budget::Level nested(budget_);
    budget_.step();
    const Sequence* s = value.sequence();
    if (const Dict* dict = value.dict()) {
      flat.append_plain("{");
      std::string_view between;
      for (const auto& [key, item] : sorted_entries(budget_, *dict)) {
        flat.append_plain(between);
        append_flat(flat, key);
        flat.append_plain(": ");
        append_flat(flat, item);
        between = ", ";
      }
      flat.append_plain("}");
    } else if (s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple)) {
      const bool list = s->kind == SequenceKind::kList;
      flat.append_plain(list ? "[" : "(");
      std::string_view between;
      for (const Value& item : s->items) {
        flat.append_plain(between);
        append_flat(flat, item);
        between = ", ";
      }
      flat.append_plain(list ? "]" : s->items.size() == 1 ? ",)" : ")");
    } else {
      append_repr(budget_, flat, value);
    }
  }

  void new_line(std::int64_t indent) {
    budget_.step();
    out_.append_plain("\n" + std::string(static_cast<std::size_t>(indent), ' '));
  }

  void format_dict(const Dict& dict, Place place) {
    out_.append_plain("{");
    const Entries entries = sorted_entries(budget_, dict);
    const std::int64_t indent = place.indent + 1;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool last = i + 1 == entries.size();
      const Text key = repr(entries[i].first);
      out_.append(key);
      out_.append_plain(": ");
      format(entries[i].second, {.indent = indent + static_cast<std::int64_t>(key.length()) + 2,
                                 .allowance = last ? place.allowance + 1 : 1,
                                 .level = place.level});
      if (!last) {
        out_.append_plain(",");
        new_line(indent);
      }
    }
    out_.append_plain("}");
  }

  void format_items(const std::vector<Value>& items, Place place, std::string_view open,
                    std::string_view close) {
    out_.append_plain(open);
    const std::int64_t indent = place.indent + 1;
    const std::int64_t allowance = place.allowance + static_cast<std::int64_t>(close.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      format(items[i], {.indent = indent, .allowance = last ? allowance : 1, .level = place.level});
      if (!last) {
        out_.append_plain(",");
        new_line(indent);
      }
    }
    out_.append_plain(close);
  }

  // A long text becomes several literals, cut at line ends and after white space.
  void format_text(const Text& text, Place place) {
    const bool outermost = place.level == 1;
    place.indent += outermost ? 1 : 0;
    place.allowance += outermost ? 1 : 0;
    const std::vector<Text> pieces = literals(text, place);
    const bool brackets = outermost && pieces.size() > 1;
    out_.append_plain(brackets ? "(" : "");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) {
        new_line(place.indent);
      }
      out_.append(pieces[i]);
    }
    out_.append_plain(brackets ? ")" : "");
  }

  std::vector<Text> literals(const Text& text, Place place) {
    std::vector<Text> out;
    const auto add = [&](Text literal) {
      budget_.allocate(sizeof(Text));
      out.push_back(std::move(literal));
    };
    const std::int64_t width = kColumns - place.indent;
    const std::vector<Text> lines = split_lines(budget_, text, LineEnds::kKeep);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool last_line = i + 1 == lines.size();
      Text whole = repr(lines[i]);
      if (static_cast<std::int64_t>(whole.length()) <= width - (last_line ? place.allowance : 0)) {
        add(std::move(whole));
        continue;
      }
      std::size_t begin = 0;  // of the literal that grows
      std::size_t end = 0;
      while (end < lines[i].size()) {
        const std::size_t next = part_end(lines[i], end);
        const bool last = last_line && next == lines[i].size();
        const Text longer = repr(substring(budget_, lines[i], begin, next));
        if (static_cast<std::int64_t>(longer.length()) > width - (last ? place.allowance : 0) &&
            end > begin) {
          add(repr(substring(budget_, lines[i], begin, end)));
          begin = end;
        }
        end = next;
      }
      add(repr(substring(budget_, lines[i], begin, end)));
    }
    return out;
  }

  // A word and the white space after it.
  static std::size_t part_end(const Text& line, std::size_t at) {
    const std::string_view view = line.view();
    const auto skip = [&](bool space) {
      while (at < view.size()) {
        const Decoded decoded = decode_utf8(view.substr(at));
        if (is_space(decoded.value) != space) return;
        at += static_cast<std::size_t>(decoded.length);
      }
    };
    skip(false);
    skip(true);
    return at;
  }

  Budget& budget_;
  TextBuilder out_;
};

}  // namespace

Value pprint(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("pprint", arguments, {}, 0);
  return PrettyPrinter(runtime.budget).print(input);
}

}  // namespace godwit::chat::jinja::filters
