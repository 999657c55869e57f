#include "chat/jinja/percent_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

// Far above what a template prints, far below what costs.
constexpr int kMaxWidth = 4096;

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, const Text& format, const Value& values)
      : budget_(budget), format_(format), view_(format.view()), values_(values), out_(budget) {
    const Sequence* s = values.sequence();
    tuple_ = s && s->kind == SequenceKind::kTuple ? s : nullptr;
  }

  Text run() {
    while (at_ < view_.size()) {
      const std::size_t percent = std::min(view_.find('%', at_), view_.size());
      out_.append(format_, at_, percent);
      at_ = percent + 1;
      if (percent < view_.size()) {
        convert();
      }
    }
    const bool mapping = values_.dict() != nullptr;
    const std::size_t given = tuple_ ? tuple_->items.size() : 1;
    const bool excusable = !tuple_ && (mapping || values_.sequence());
    if (used_ < given && !excusable) {
      raise("not all arguments converted during string formatting");
    }
    return out_.finish().as_markup(format_.is_markup());
  }

 private:
  char take() {
    if (at_ >= view_.size()) {
      raise("incomplete format");
    }
    return view_[at_++];
  }

  const Value& next_value() {
    if (named_) {
      return *named_;
    }
    const std::size_t given = tuple_ ? tuple_->items.size() : 1;
    if (used_ >= given) {
      raise("not enough arguments for format string");
    }
    const Value& value = tuple_ ? tuple_->items[used_] : values_;
    ++used_;
    return value;
  }

  void convert() {
    named_ = nullptr;
    NumberSpec spec;
    char c = take();
    if (c == '(') {
      const std::size_t close = view_.find(')', at_);
      if (close == std::string_view::npos) {
        raise("incomplete format key");
      }
      if (!values_.dict()) {
        raise("format requires a mapping");
      }
      const std::string_view key = view_.substr(at_, close - at_);
      named_ = find_key(budget_, *values_.dict(), key);
      if (!named_) {
        raise("{}", quoted(key));
      }
      at_ = close + 1;
      c = take();
    }
    for (;; c = take()) {
      bool* flag = c == '-'   ? &spec.left
                   : c == '+' ? &spec.plus
                   : c == ' ' ? &spec.space
                   : c == '#' ? &spec.alternate
                   : c == '0' ? &spec.zero
                              : nullptr;
      if (!flag) {
        break;
      }
      *flag = true;
    }
    spec.width = number(c);
    if (c == '.') {
      c = take();
      spec.precision = number(c);
    }
    while (c == 'h' || c == 'l' || c == 'L') {
      c = take();
    }
    spec.type = c;
    insert(spec);
  }

  int number(char& c) {
    if (c == '*') {
      const auto given = as_integer(next_value());
      if (!given) {
        raise("* wants int");
      }
      c = take();
      return static_cast<int>(std::clamp<std::int64_t>(*given, 0, kMaxWidth));
    }
    int n = 0;
    for (; c >= '0' && c <= '9'; c = take()) {
      n = n * 10 + (c - '0');
      if (n > kMaxWidth) {
        raise("a format's width or precision is above {}", kMaxWidth);
      }
    }
    return n;
  }

  void insert(const NumberSpec& spec) {
    switch (spec.type) {
      case '%':
        return out_.append_plain("%");
      case 's':
        return insert_text(to_text(budget_, next_value()), spec);
      case 'r':
      case 'a': {
        TextBuilder repr(budget_);
        append_repr(budget_, repr, next_value());
        return insert_text(repr.finish(), spec);
      }
      case 'c':
        return insert_char(spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return insert_integer(spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return insert_float(spec);
      default:
        raise("unsupported format character '{}' at index {}", spec.type, at_ - 1);
    }
  }

  void insert_text(const Text& value, const NumberSpec& spec) {
    const Text text = format_.is_markup() ? html_escape(budget_, value) : value;
    text.pay_to_count(budget_);
    std::size_t length = text.length();
    std::size_t end = text.size();
    if (spec.precision >= 0 && static_cast<std::size_t>(spec.precision) < length) {
      length = static_cast<std::size_t>(spec.precision);
      end = text.offset_of(length);
    }
    const auto width = static_cast<std::size_t>(spec.width);
    const std::string pad(width > length ? width - length : 0, ' ');
    out_.append_plain(spec.left ? "" : pad);
    out_.append(text, 0, end);
    out_.append_plain(spec.left ? pad : "");
  }

  void insert_char(const NumberSpec& spec) {
    const Value& value = next_value();
    if (const Text* text = value.text(); text && text->length() == 1) {
      return insert_text(*text, spec);
    }
    const auto code = as_integer(value);
    if (!code) {
      raise("%c requires int or char");
    }
    if (*code < 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)) {
      raise("%c arg not in range(0x110000)");
    }
    std::string c;
    append_utf8(c, static_cast<char32_t>(*code));
    insert_text(Text(c), spec);
  }

  void insert_integer(const NumberSpec& spec) {
    const Value& value = next_value();
    if (value.is_undefined()) {
      raise_undefined(value);
    }
    auto i = as_integer(value);
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (const auto* d = value.get<double>(); d && decimal) {
      if (!(std::abs(*d) < 9e18)) {
        raise("a float does not fit in a 64-bit integer");
      }
      i = static_cast<std::int64_t>(*d);
    }
    if (!i) {
      raise("%{} format: {} is required, not {}", spec.type,
            decimal ? "a real number" : "an integer", type_name(value));
    }
    out_.append_plain(format_integer(*i, spec));
  }

  void insert_float(const NumberSpec& spec) {
    const Value& value = next_value();
    if (value.is_undefined()) {
      raise_undefined(value);
    }
    const auto number = as_number(value);
    if (!number) {
      raise("must be real number, not {}", type_name(value));
    }
    out_.append_plain(format_float(budget_, *number, spec));
  }

  Budget& budget_;
  const Text& format_;
  std::string_view view_;
  const Value& values_;
  const Sequence* tuple_ = nullptr;
  const Value* named_ = nullptr;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  TextBuilder out_;
};

// Sign, prefix and digits brought to the width.
std::string padded(std::string_view sign, std::string_view prefix, std::string digits,
                   const NumberSpec& spec) {
  const auto width = static_cast<std::size_t>(spec.width);
  const std::size_t length = sign.size() + prefix.size() + digits.size();
  const std::size_t missing = width > length ? width - length : 0;
  if (spec.left) {
    return fmt::format("{}{}{}{}", sign, prefix, digits, std::string(missing, ' '));
  }
  if (spec.zero) {
    return fmt::format("{}{}{}{}", sign, prefix, std::string(missing, '0'), digits);
  }
  return fmt::format("{}{}{}{}", std::string(missing, ' '), sign, prefix, digits);
}

std::string_view sign_of(bool negative, const NumberSpec& spec) {
  return negative ? "-" : spec.plus ? "+" : spec.space ? " " : "";
}

}  // namespace

std::string format_integer(std::int64_t value, const NumberSpec& spec) {
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits;
  std::string_view prefix;
  switch (spec.type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      prefix = "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    default:
      digits = fmt::format("{}", magnitude);
      break;
  }
  if (spec.precision > 0 && digits.size() < static_cast<std::size_t>(spec.precision)) {
    digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
  }
  return padded(sign_of(value < 0, spec), spec.alternate ? prefix : "", std::move(digits), spec);
}

std::string format_float(Budget& budget, double value, const NumberSpec& spec) {
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const char format[] = {'%', spec.alternate ? '#' : '0', '.', '*', spec.type, '\0'};
  std::string digits(static_cast<std::size_t>(precision) + 330, '\0');
  budget.step(digits.size() / 8);  // each may be a division of a long number
  const int n = std::snprintf(digits.data(), digits.size(), format, precision, std::abs(value));
  digits.resize(static_cast<std::size_t>(n));
  NumberSpec finite = spec;
  finite.zero = spec.zero && std::isfinite(value);
  return padded(sign_of(std::signbit(value) && !std::isnan(value), spec), "", std::move(digits),
                finite);
}

Text percent_format(Budget& budget, const Text& format, const Value& values) {
  return PercentFormatter(budget, format, values).run();
}

}  // namespace godwit::chat::jinja
