#include "chat/jinja/brace_format.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "chat/jinja/operators.h"
#include "chat/jinja/percent_format.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

constexpr int kMaxWidth = 4096;

std::optional<std::size_t> digits(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// [[fill]align][sign][#][0][width][,][.precision][type]
struct Spec {
  std::string fill = " ";
  char align = 0;
  bool grouped = false;
  NumberSpec number{.type = 0};
};

class SpecParser {
 public:
  explicit SpecParser(std::string_view text) : text_(text) {}

  Spec run() {
    Spec spec;
    parse_align(spec);
    if (take('+')) {
      spec.number.plus = true;
    } else if (take(' ')) {
      spec.number.space = true;
    } else {
      take('-');
    }
    spec.number.alternate = take('#');
    if (take('0') && spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    spec.number.width = number();
    spec.grouped = take(',');
    if (take('.')) {
      if (text_.empty() || text_[0] < '0' || text_[0] > '9') {
        raise("Format specifier missing precision");
      }
      spec.number.precision = number();
    }
    if (!text_.empty()) {
      spec.number.type = text_[0];
      text_.remove_prefix(1);
    }
    if (!text_.empty()) {
      raise("Invalid format specifier");
    }
    return spec;
  }

 private:
  static bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

  bool take(char c) {
    const bool found = text_.starts_with(c);
    text_.remove_prefix(found ? 1 : 0);
    return found;
  }

  void parse_align(Spec& spec) {
    if (text_.empty()) {
      return;
    }
    const auto first = static_cast<std::size_t>(decode_utf8(text_).length);
    if (text_.size() > first && is_align(text_[first])) {
      spec.fill = text_.substr(0, first);
      spec.align = text_[first];
      text_.remove_prefix(first + 1);
    } else if (is_align(text_[0])) {
      spec.align = text_[0];
      text_.remove_prefix(1);
    }
  }

  int number() {
    int value = 0;
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') {
      value = value * 10 + (text_[0] - '0');
      if (value > kMaxWidth) {
        raise("a format's width or precision is above {}", kMaxWidth);
      }
      text_.remove_prefix(1);
    }
    return value;
  }

  std::string_view text_;
};

Text aligned(Budget& budget, const Text& text, const Spec& spec, char default_align) {
  const char align = spec.align != 0 ? spec.align : default_align;
  const Text fill(spec.fill);
  if (align == '=') {  // between sign and digits
    const bool sign =
        !text.empty() && std::string_view("+- ").find(text.view()[0]) != std::string_view::npos;
    const std::size_t head = sign ? 1 : 0;
    return join(budget, Text(),
                {substring(budget, text, 0, head),
                 pad(budget, substring(budget, text, head, text.size()),
                     spec.number.width - static_cast<int>(head), fill, Align::kRight)});
  }
  if (align == '^') {  // unlike str.center, the odd one always goes to the right
    const auto length = static_cast<std::int64_t>(text.length());
    const std::int64_t left = std::max<std::int64_t>(spec.number.width - length, 0) / 2;
    return pad(budget, pad(budget, text, length + left, fill, Align::kRight), spec.number.width,
               fill, Align::kLeft);
  }
  return pad(budget, text, spec.number.width, fill, align == '>' ? Align::kRight : Align::kLeft);
}

std::string grouped(std::string number) {
  std::size_t end = number.find_first_of(".e");
  end = end == std::string::npos ? number.size() : end;
  const std::size_t begin = !number.empty() && (number[0] < '0' || number[0] > '9') ? 1 : 0;
  for (std::size_t at = end; at > begin + 3;) {
    at -= 3;
    number.insert(at, 1, ',');
  }
  return number;
}

std::string format_number(Budget& budget, const Value& value, const Spec& spec) {
  NumberSpec number = spec.number;
  number.width = 0;  // aligned() brings it there
  const bool integer = as_integer(value).has_value();
  if (integer && (number.type == 0 || number.type == 'd' || number.type == 'n')) {
    number.type = 'd';
    return format_integer(*as_integer(value), number);
  }
  if (integer && std::string_view("xXob").find(number.type) != std::string_view::npos) {
    return format_integer(*as_integer(value), number);
  }
  if (number.type == 0 && number.precision < 0) {
    const std::string digits = float_repr(*as_number(value));
    const bool negative = digits[0] == '-';
    return (negative ? "" : number.plus ? "+" : number.space ? " " : "") + digits;
  }
  const bool percent = number.type == '%';
  number.type = percent ? 'f' : number.type == 0 || number.type == 'n' ? 'g' : number.type;
  if (std::string_view("eEfFgG").find(number.type) == std::string_view::npos) {
    raise("Unknown format code '{}' for object of type '{}'", number.type, type_name(value));
  }
  const double scaled = *as_number(value) * (percent ? 100 : 1);
  return format_float(budget, scaled, number) + (percent ? "%" : "");
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Text& format, const Arguments& arguments)
      : runtime_(runtime), arguments_(arguments), format_(format), out_(runtime.budget) {}

  Text run() {
    const std::string_view view = format_.view();
    std::size_t at = 0;
    while (at < view.size()) {
      const std::size_t brace = std::min(view.find_first_of("{}", at), view.size());
      out_.append(format_, at, brace);
      if (brace == view.size()) {
        break;
      }
      if (view.substr(brace, 2) == "{{" || view.substr(brace, 2) == "}}") {
        out_.append(format_, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (view[brace] == '}') {
        raise("Single '}}' encountered in format string");
      }
      at = field_end(brace + 1);
      field(view.substr(brace + 1, at - brace - 2));
    }
    return out_.finish().as_markup(format_.is_markup());
  }

 private:
  // One past the brace that closes the field. Fields within a format are not supported.
  std::size_t field_end(std::size_t begin) {
    const std::size_t end = format_.view().find_first_of("{}", begin);
    if (end == std::string_view::npos) {
      raise("expected '}}' before end of string");
    }
    if (format_.view()[end] == '{') {
      raise("nested fields of str.format are not supported");
    }
    return end + 1;
  }

  void field(std::string_view field) {
    runtime_.budget.step();
    const std::size_t mark = std::min(field.find_first_of("!:"), field.size());
    Value value = lookup(field.substr(0, mark));
    std::string_view rest = field.substr(mark);
    if (rest.starts_with('!')) {
      value = converted(value, rest.substr(1, 1));
      rest.remove_prefix(std::min<std::size_t>(2, rest.size()));
    }
    const std::string_view spec_text = rest.starts_with(':') ? rest.substr(1) : "";
    Text text = spec_text.empty() ? to_text(runtime_.budget, value)
                                  : formatted(value, SpecParser(spec_text).run());
    out_.append(format_.is_markup() ? html_escape(runtime_.budget, text) : text);
  }

  Value converted(const Value& value, std::string_view conversion) {
    if (conversion != "r" && conversion != "s") {
      raise("unknown conversion of str.format");
    }
    TextBuilder text(runtime_.budget);
    conversion == "r" ? append_repr(runtime_.budget, text, value)
                      : append_str(runtime_.budget, text, value);
    return text.finish();
  }

  Text formatted(const Value& value, const Spec& spec) {
    Budget& budget = runtime_.budget;
    if (const Text* text = value.text()) {
      if (spec.number.type != 0 && spec.number.type != 's') {
        raise("Unknown format code '{}' for object of type 'str'", spec.number.type);
      }
      text->pay_to_count(budget);
      const std::size_t end =
          spec.number.precision < 0
              ? text->size()
              : text->offset_of(static_cast<std::size_t>(spec.number.precision));
      return aligned(budget, substring(budget, *text, 0, end), spec, '<');
    }
    if (!as_number(value)) {
      raise("unsupported format string passed to {}.__format__", type_name(value));
    }
    std::string number = format_number(budget, value, spec);
    return aligned(budget, Text(spec.grouped ? grouped(std::move(number)) : number), spec, '>');
  }

  // "", "0", "name", each with .attribute and [key] parts behind.
  Value lookup(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      if (path[0] == '.') {
        path.remove_prefix(1);
        const std::size_t stop = std::min(path.find_first_of(".["), path.size());
        value = get_attribute(runtime_, value, path.substr(0, stop));
        path.remove_prefix(stop);
      } else {
        const std::size_t close = path.find(']');
        if (path[0] != '[' || close == std::string_view::npos) {
          raise("Missing ']' in format string");
        }
        const std::string_view key = path.substr(1, close - 1);
        const auto index = digits(key);
        value = get_item(runtime_, value,
                         index ? Value(static_cast<std::int64_t>(*index)) : make_text(key));
        path.remove_prefix(close + 1);
      }
      if (value.is_undefined()) {
        raise_undefined(value);
      }
    }
    return value;
  }

  Value argument(std::string_view name) {
    std::optional<std::size_t> index = digits(name);
    if (name.empty()) {
      index = next_++;
    }
    if (index) {
      if (*index >= arguments_.positional.size()) {
        raise("Replacement index {} out of range for positional args tuple", *index);
      }
      return arguments_.positional[*index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) {
        return value;
      }
    }
    raise("{}", quoted(name));
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  const Text& format_;
  std::size_t next_ = 0;
  TextBuilder out_;
};

}  // namespace

Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments) {
  return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace godwit::chat::jinja
