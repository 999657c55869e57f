#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/percent_format.h"
#include "chat/jinja/text_operations.h"

namespace godwit::chat::jinja::filters {

namespace {

// Largest doubles that an int64 holds, exclusive.
constexpr double kTwo63 = 9223372036854775808.0;

// A number's characters as Python reads them: stripped, single underscores between digits gone.
std::optional<std::string> number_characters(Runtime& runtime, const Text& text) {
  constexpr std::size_t kLongest = 400;
  const Text stripped = strip(runtime.budget, text, Side::kBoth, nullptr);
  const std::string_view view = stripped.view();
  if (view.empty() || view.size() > kLongest) {
    return std::nullopt;
  }
  std::string out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    if (view[i] != '_') {
      out += view[i];
    } else if (i == 0 || i + 1 == view.size() || view[i - 1] == '_' || view[i + 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

// Python's int(text, base).
std::optional<std::int64_t> parse_integer(Runtime& runtime, const Text& text, int base) {
  auto characters = number_characters(runtime, text);
  if (!characters) {
    return std::nullopt;
  }
  std::string_view digits = *characters;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') {
    digits.remove_prefix(1);
  }
  if (digits.size() > 2 && digits[0] == '0') {
    const char prefix = static_cast<char>(digits[1] | 0x20);
    const int prefix_base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (prefix_base != 0 && (base == prefix_base || base == 0)) {
      base = prefix_base;
      digits.remove_prefix(2);
    }
  }
  base = base == 0 ? 10 : base;
  const std::string signed_digits = (negative ? "-" : "") + std::string(digits);
  std::int64_t value = 0;
  const char* last = signed_digits.data() + signed_digits.size();
  const auto [end, error] = std::from_chars(signed_digits.data(), last, value, base);
  if (error == std::errc::result_out_of_range && end == last) {
    raise("an integer does not fit in 64 bits");
  }
  const bool doubled_sign = !digits.empty() && (digits[0] == '-' || digits[0] == '+');
  return error == std::errc{} && end == last && !doubled_sign ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_float(Runtime& runtime, const Text& text) {
  const auto characters = number_characters(runtime, text);
  // strtod reads hexadecimal too; float() does not.
  if (!characters || characters->find_first_of("xX(") != std::string::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(characters->c_str(), &end);
  return end == characters->c_str() + characters->size() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> truncated(double value) {
  if (!std::isfinite(value)) {
    return std::nullopt;
  }
  if (!(value < kTwo63 && value >= -kTwo63)) {
    raise("an integer does not fit in 64 bits");
  }
  return static_cast<std::int64_t>(value);
}

// Python's round(value, digits): half to even on the exact value.
double rounded(Budget& budget, double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 308) {
    return value;
  }
  if (digits < -308) {
    return std::copysign(0.0, value);
  }
  if (digits >= 0) {
    NumberSpec spec{};
    spec.precision = static_cast<int>(digits);
    spec.type = 'f';
    return std::strtod(format_float(budget, value, spec).c_str(), nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

std::int64_t rounded(std::int64_t value, std::int64_t digits) {
  if (digits >= 0) {
    return value;
  }
  if (digits < -18) {
    return 0;
  }
  std::int64_t unit = 1;
  for (std::int64_t i = digits; i < 0; ++i) {
    unit *= 10;
  }
  std::int64_t rest = value % unit;
  rest = rest < 0 ? rest + unit : rest;
  std::int64_t down = 0;
  if (__builtin_sub_overflow(value, rest, &down)) {
    raise("an integer does not fit in 64 bits");
  }
  const bool odd = (down / unit) % 2 != 0;
  const bool up = rest > unit - rest || (rest == unit - rest && odd);
  std::int64_t out = 0;
  if (__builtin_add_overflow(down, up ? unit : 0, &out)) {
    raise("an integer does not fit in 64 bits");
  }
  return out;
}

double number_of(const Value& value) {
  if (value.is_undefined()) {
    raise_undefined(value);
  }
  const auto number = as_number(value);
  if (!number) {
    raise("expected a number, found {}", type_name(value));
  }
  return *number;
}

}  // namespace

Value absolute(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters p("abs", arguments, {}, 0);
  if (const auto i = as_integer(input)) {
    return *i < 0 ? unary(UnaryOp::kMinus, Value(*i)) : Value(*i);
  }
  return std::abs(number_of(input));
}

Value to_float(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("float", arguments, {"default"}, 0);
  if (input.is_undefined()) {
    raise_undefined(input);
  }
  auto number = as_number(input);
  if (const Text* text = input.text()) {
    number = parse_float(runtime, *text);
  }
  return number ? Value(*number) : p.get(0) ? p.at(0) : Value(0.0);
}

Value filesizeformat(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("filesizeformat", arguments, {"binary"}, 0);
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  // Squares and higher powers of a thousand, each as near as a double comes; 1e24 is a little less
  // than that power, which the comparison below knows.
  constexpr std::array<double, 8> kDecimal = {1e6, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24, 1e27};
  const bool binary = p.flag(0);
  const std::optional<double> number =
      input.text() ? parse_float(runtime, *input.text()) : std::optional(number_of(input));
  if (!number) {
    raise("could not convert string to float: {}", quoted(input.text()->view()));
  }
  const double bytes = *number;
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) {
    return make_text("1 Byte");
  }
  if (bytes < base) {
    if (std::isinf(bytes)) {
      raise("cannot convert float infinity to integer");
    }
    return make_text(fmt::format("{:.0f} Bytes", std::trunc(bytes) + 0.0));
  }
  const auto unit = [&](std::size_t i) {
    return binary ? std::ldexp(1.0, 10 * (static_cast<int>(i) + 2)) : kDecimal[i];
  };
  std::size_t i = 0;
  while (i + 1 < kPrefixes.size() &&
         !(bytes < unit(i) || (i == 6 && bytes == unit(i) && !binary))) {
    ++i;
  }
  NumberSpec spec{};
  spec.precision = 1;
  spec.type = 'f';
  const std::string letter(1, binary && i == 0 ? 'K' : kPrefixes[i]);
  return make_text(fmt::format("{} {}{}",
                               format_float(runtime.budget, base * bytes / unit(i), spec), letter,
                               binary ? "iB" : "B"));
}

Value to_int(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("int", arguments, {"default", "base"}, 0);
  if (input.is_undefined()) {
    raise_undefined(input);
  }
  std::optional<std::int64_t> number = as_integer(input);
  if (const auto* d = input.get<double>()) {
    number = truncated(*d);
  } else if (const Text* text = input.text()) {
    const std::int64_t base = p.integer(1, 10);
    if (base == 0 || (base >= 2 && base <= 36)) {
      number = parse_integer(runtime, *text, static_cast<int>(base));
    }
    if (!number) {
      const auto value = parse_float(runtime, *text);
      number = value ? truncated(*value) : std::nullopt;
    }
  }
  return number ? Value(*number) : p.get(0) ? p.at(0) : Value(std::int64_t{0});
}

Value round(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("round", arguments, {"precision", "method"}, 0);
  const std::int64_t precision = p.integer(0, 0);
  const std::string_view method = p.get(1) ? p.text(1).view() : "common";
  if (method == "common") {
    if (const auto i = as_integer(input)) {
      return rounded(*i, precision);
    }
    return rounded(runtime.budget, number_of(input), precision);
  }
  if (method != "ceil" && method != "floor") {
    raise("method must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number_of(input) * scale;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

}  // namespace godwit::chat::jinja::filters
