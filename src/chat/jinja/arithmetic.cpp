#include <cmath>
#include <limits>

#include "chat/jinja/operators.h"
#include "chat/jinja/percent_format.h"
#include "chat/jinja/text_operations.h"

namespace godwit::chat::jinja {

namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kDivide:
      return "/";
    case BinaryOp::kFloorDivide:
      return "//";
    case BinaryOp::kModulo:
      return "%";
    case BinaryOp::kPower:
      return "** or pow()";
  }
  return "";
}

[[noreturn]] void raise_overflow() { raise("an integer does not fit in 64 bits"); }

[[noreturn]] void raise_zero(std::string_view what) { raise("{}", what); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    raise_zero("integer division or modulo by zero");
  }
  if (b == -1) {
    std::int64_t negated = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &negated)) {
      raise_overflow();
    }
    return negated;
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    raise_zero("integer modulo by zero");
  }
  if (b == -1) {
    return 0;
  }
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      raise_overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      raise_overflow();
    }
  }
  return result;
}

Value integer_binary(BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case BinaryOp::kAdd:
      return __builtin_add_overflow(a, b, &out) ? (raise_overflow(), out) : out;
    case BinaryOp::kSubtract:
      return __builtin_sub_overflow(a, b, &out) ? (raise_overflow(), out) : out;
    case BinaryOp::kMultiply:
      return __builtin_mul_overflow(a, b, &out) ? (raise_overflow(), out) : out;
    case BinaryOp::kDivide:
      if (b == 0) {
        raise_zero("division by zero");
      }
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOp::kFloorDivide:
      return floor_divide(a, b);
    case BinaryOp::kModulo:
      return modulo(a, b);
    case BinaryOp::kPower:
      if (b < 0) {
        if (a == 0) {
          raise_zero("0.0 cannot be raised to a negative power");
        }
        return std::pow(static_cast<double>(a), static_cast<double>(b));
      }
      return integer_power(a, b);
  }
  return out;
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) {
    return std::copysign(0.0, b);
  }
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value float_binary(BinaryOp op, double a, double b) {
  const bool divides =
      op == BinaryOp::kDivide || op == BinaryOp::kFloorDivide || op == BinaryOp::kModulo;
  if (divides && b == 0) {
    raise_zero(op == BinaryOp::kDivide        ? "float division by zero"
               : op == BinaryOp::kFloorDivide ? "float floor division by zero"
                                              : "float modulo");
  }
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSubtract:
      return a - b;
    case BinaryOp::kMultiply:
      return a * b;
    case BinaryOp::kDivide:
      return a / b;
    case BinaryOp::kFloorDivide:
      return std::floor((a - float_modulo(a, b)) / b + 0.5);
    case BinaryOp::kModulo:
      return float_modulo(a, b);
    case BinaryOp::kPower:
      if (a < 0 && std::isfinite(b) && b != std::floor(b)) {
        raise("a negative number to a fractional power is complex");
      }
      return std::pow(a, b);
  }
  return a;
}

Value concatenate_values(Budget& budget, const Value& a, const Value& b) {
  if (a.text() && b.text()) {
    return concatenate(budget, *a.text(), *b.text());
  }
  const Sequence& left = *a.sequence();
  const Sequence& right = *b.sequence();
  budget.allocate((left.items.size() + right.items.size()) * sizeof(Value));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_sequence(budget, left.kind, std::move(items));
}

bool is_concatenable(const Value& value) {
  const Sequence* s = value.sequence();
  return value.text() || (s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple));
}

Value repeat(Budget& budget, const Value& value, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count < 0 ? 0 : count);
  if (const Text* text = value.text()) {
    TextBuilder out(budget);
    for (std::size_t i = 0; i < n && !text->empty(); ++i) {
      budget.step();
      out.append(*text);
    }
    return out.finish().as_markup(text->is_markup());
  }
  const Sequence& s = *value.sequence();
  std::vector<Value> items;
  for (std::size_t i = 0; i < n && !s.items.empty(); ++i) {
    budget.allocate(s.items.size() * sizeof(Value));
    items.insert(items.end(), s.items.begin(), s.items.end());
  }
  return make_sequence(budget, s.kind, std::move(items));
}

}  // namespace

Value binary(Budget& budget, BinaryOp op, const Value& a, const Value& b) {
  budget.step();
  if (op == BinaryOp::kModulo && a.text()) {
    return percent_format(budget, *a.text(), b);
  }
  if (a.is_undefined() || b.is_undefined()) {
    raise_undefined(a.is_undefined() ? a : b);
  }
  if (const auto i = as_integer(a), j = as_integer(b); i && j) {
    return integer_binary(op, *i, *j);
  }
  if (const auto x = as_number(a), y = as_number(b); x && y) {
    return float_binary(op, *x, *y);
  }
  if (op == BinaryOp::kAdd && is_concatenable(a)) {
    const bool same_kind =
        a.text() ? b.text() != nullptr : b.sequence() && a.sequence()->kind == b.sequence()->kind;
    if (!same_kind) {
      raise("can only concatenate {0} (not \"{1}\") to {0}", type_name(a), type_name(b));
    }
    return concatenate_values(budget, a, b);
  }
  if (op == BinaryOp::kMultiply) {
    if (const auto count = as_integer(b); count && is_concatenable(a)) {
      return repeat(budget, a, *count);
    }
    if (const auto count = as_integer(a); count && is_concatenable(b)) {
      return repeat(budget, b, *count);
    }
  }
  raise("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a),
        type_name(b));
}

Value unary(UnaryOp op, const Value& operand) {
  if (op == UnaryOp::kNot) {
    return !truthy(operand);
  }
  if (operand.is_undefined()) {
    raise_undefined(operand);
  }
  if (const auto i = as_integer(operand)) {
    return op == UnaryOp::kPlus ? Value(*i) : integer_binary(BinaryOp::kSubtract, 0, *i);
  }
  if (const auto* d = operand.get<double>()) {
    return op == UnaryOp::kPlus ? *d : -*d;
  }
  raise("bad operand type for unary {}: '{}'", op == UnaryOp::kPlus ? '+' : '-',
        type_name(operand));
}

}  // namespace godwit::chat::jinja
