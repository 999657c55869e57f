#include "chat/jinja/printing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "chat/jinja/ast.h"
#include "chat/jinja/object.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

void append_repr_text(Budget& budget, TextBuilder& out, const Text& text) {
  // Python prefers single quotes, and double ones only where that saves escapes.
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const bool has_double = text.view().find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  const std::string_view quote_text(&quote, 1);
  out.append_plain(quote_text);
  for (CodePoints at = CodePoints(budget, text).start(); !at.done(); at.next()) {
    const char32_t c = at.value();
    std::string escaped;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      escaped = {'\\', static_cast<char>(c)};
    } else if (c == '\n') {
      escaped = "\\n";
    } else if (c == '\r') {
      escaped = "\\r";
    } else if (c == '\t') {
      escaped = "\\t";
    } else if (is_printable(c)) {
      out.append(text, at.begin(), at.end());
      continue;
    } else if (c < 0x100) {
      escaped = fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (c < 0x10000) {
      escaped = fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      escaped = fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
    out.append_as(escaped, at.user());
  }
  out.append_plain(quote_text);
}

void append_items(Budget& budget, TextBuilder& out, const std::vector<Value>& items,
                  std::string_view open, std::string_view close) {
  out.append_plain(open);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      out.append_plain(", ");
    }
    append_repr(budget, out, items[i]);
  }
  out.append_plain(close);
}

void append_repr_sequence(Budget& budget, TextBuilder& out, const Sequence& s) {
  switch (s.kind) {
    case SequenceKind::kList:
      return append_items(budget, out, s.items, "[", "]");
    case SequenceKind::kTuple:
      return append_items(budget, out, s.items, "(", s.items.size() == 1 ? ",)" : ")");
    case SequenceKind::kKeys:
      return append_items(budget, out, s.items, "dict_keys([", "])");
    case SequenceKind::kValues:
      return append_items(budget, out, s.items, "dict_values([", "])");
    case SequenceKind::kItems:
      return append_items(budget, out, s.items, "dict_items([", "])");
    case SequenceKind::kRange:
      return out.append_plain(s.step == 1
                                  ? fmt::format("range({}, {})", s.start, s.stop)
                                  : fmt::format("range({}, {}, {})", s.start, s.stop, s.step));
    case SequenceKind::kIterator:
      return out.append_plain("<generator object>");
  }
}

void append_repr_dict(Budget& budget, TextBuilder& out, const Dict& dict) {
  out.append_plain("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!first) {
      out.append_plain(", ");
    }
    first = false;
    append_repr(budget, out, key);
    out.append_plain(": ");
    append_repr(budget, out, value);
  }
  out.append_plain("}");
}

void append_repr_object(Budget& budget, TextBuilder& out, const Object& object) {
  if (const auto* ns = std::get_if<Namespace>(&object.data)) {
    out.append_plain("<Namespace {");
    bool first = true;
    for (const auto& [name, value] : ns->attributes) {
      out.append_plain(first ? "" : ", ");
      first = false;
      append_repr(budget, out, make_text(name));
      out.append_plain(": ");
      append_repr(budget, out, value);
    }
    return out.append_plain("}>");
  }
  if (const auto* macro = std::get_if<Macro>(&object.data)) {
    return out.append_plain(fmt::format("<Macro {}>", quoted(macro->node->name)));
  }
  if (const auto* loop = std::get_if<Loop>(&object.data)) {
    return out.append_plain(
        fmt::format("<LoopContext {}/{}>", loop->index0 + 1, loop->items.size()));
  }
  out.append_plain(fmt::format("<{} object>", type_name(Value(const_cast<Object*>(&object)))));
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style)
      : budget_(budget), style_(style), out_(budget) {}

  Text write(const Value& value) {
    append(value, 0);
    return out_.finish();
  }

 private:
  void append(const Value& value, std::size_t level) {
    const Budget::Level nested(budget_);
    budget_.step();
    if (const Text* text = value.text()) {
      append_text(*text);
    } else if (const Dict* dict = value.dict()) {
      append_dict(*dict, level);
    } else if (const Sequence* s = value.sequence();
               s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple)) {
      append_list(*s, level);
    } else if (const auto* d = value.get<double>()) {
      out_.append_plain(number(*d));
    } else if (const auto* i = value.get<std::int64_t>()) {
      out_.append_plain(fmt::format("{}", *i));
    } else if (const auto* b = value.get<bool>()) {
      out_.append_plain(*b ? "true" : "false");
    } else if (value.is_none()) {
      out_.append_plain("null");
    } else {
      raise("Object of type {} is not JSON serializable", type_name(value));
    }
  }

  static std::string number(double d) {
    if (std::isnan(d)) {
      return "NaN";
    }
    if (std::isinf(d)) {
      return d > 0 ? "Infinity" : "-Infinity";
    }
    return float_repr(d);
  }

  void append_text(const Text& text) {
    out_.append_plain("\"");
    for (CodePoints at = CodePoints(budget_, text).start(); !at.done(); at.next()) {
      const char32_t c = at.value();
      if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x7F || !style_.ensure_ascii)) {
        out_.append(text, at.begin(), at.end());
      } else {
        out_.append_as(escape(c), at.user());
      }
    }
    out_.append_plain("\"");
  }

  static std::string escape(char32_t c) {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      case 0x7F:  // ASCII, though not printable: json.dumps leaves it
        return "\x7F";
      default:
        break;
    }
    if (c < 0x10000) {
      return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
    const unsigned v = static_cast<unsigned>(c) - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
  }

  void line(std::size_t level) {
    if (!style_.indent) {
      return;
    }
    out_.append_plain("\n");
    for (std::size_t i = 0; i < level; ++i) {
      out_.append(*style_.indent);
    }
  }

  void append_list(const Sequence& s, std::size_t level) {
    if (s.items.empty()) {
      return out_.append_plain("[]");
    }
    out_.append_plain("[");
    for (std::size_t i = 0; i < s.items.size(); ++i) {
      if (i > 0) {
        out_.append(style_.item_separator);
      }
      line(level + 1);
      append(s.items[i], level + 1);
    }
    line(level);
    out_.append_plain("]");
  }

  void append_dict(const Dict& dict, std::size_t level) {
    if (dict.entries.empty()) {
      return out_.append_plain("{}");
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) {
      entries.push_back(&entry);
    }
    if (style_.sort_keys) {
      sort(entries);
    }
    out_.append_plain("{");
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) {
        out_.append(style_.item_separator);
      }
      first = false;
      line(level + 1);
      append_key(entry->first);
      out_.append(style_.key_separator);
      append(entry->second, level + 1);
    }
    line(level);
    out_.append_plain("}");
  }

  static void sort(std::vector<const std::pair<Value, Value>*>& entries) {
    for (const auto* entry : entries) {
      if (!entry->first.text()) {
        raise("tojson sorts only dicts whose keys are all strings, found {}",
              type_name(entry->first));
      }
    }
    std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
      return a->first.text()->view() < b->first.text()->view();
    });
  }

  void append_key(const Value& key) {
    if (const Text* text = key.text()) {
      return append_text(*text);
    }
    if (key.sequence() || key.dict() || key.get<Object*>()) {
      raise("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
    out_.append_plain("\"");
    append(key, 0);
    out_.append_plain("\"");
  }

  Budget& budget_;
  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  std::string digits(buffer.data(), end);
  const std::size_t e = digits.find('e');
  const int exponent = std::stoi(digits.substr(e + 1));
  digits.resize(e);
  const bool negative = digits.front() == '-';
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) {
      out += "." + digits.substr(1);
    }
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_str(Budget& budget, TextBuilder& out, const Value& value) {
  if (const Text* text = value.text()) {
    out.append(*text);
  } else if (!value.is_undefined()) {
    append_repr(budget, out, value);
  }
}

Text to_text(Budget& budget, const Value& value) {
  if (const Text* text = value.text()) {
    return *text;
  }
  TextBuilder out(budget);
  append_str(budget, out, value);
  return out.finish();
}

void append_repr(Budget& budget, TextBuilder& out, const Value& value) {
  const Budget::Level nested(budget);
  budget.step();
  if (const Text* text = value.text()) {
    out.append_plain(text->is_markup() ? "Markup(" : "");
    append_repr_text(budget, out, *text);
    out.append_plain(text->is_markup() ? ")" : "");
  } else if (const Sequence* sequence = value.sequence()) {
    append_repr_sequence(budget, out, *sequence);
  } else if (const Dict* dict = value.dict()) {
    append_repr_dict(budget, out, *dict);
  } else if (Object* const* object = value.get<Object*>()) {
    append_repr_object(budget, out, **object);
  } else if (const auto* d = value.get<double>()) {
    out.append_plain(float_repr(*d));
  } else if (const auto* i = value.get<std::int64_t>()) {
    out.append_plain(fmt::format("{}", *i));
  } else if (const auto* b = value.get<bool>()) {
    out.append_plain(*b ? "True" : "False");
  } else if (value.is_none()) {
    out.append_plain("None");
  } else if (value.is_undefined()) {
    out.append_plain("Undefined");
  } else {
    out.append_plain(fmt::format("<{} object>", type_name(value)));
  }
}

Text to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  return JsonWriter(budget, style).write(value);
}

}  // namespace godwit::chat::jinja
