#include <algorithm>
#include <array>

#include "chat/jinja/object.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/runtime.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

using TestFunction = bool (*)(Runtime&, const Value&, const Arguments&);
struct TestRow {
  std::string_view name;
  TestFunction function;
};

template <CompareOp op>
bool comparing(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("comparison test", arguments, {"other"}, 1);
  return compare(runtime.budget, op, input, p.at(0));
}

template <bool (*predicate)(const Value&)>
bool simple(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters p("test", arguments, {}, 0);
  return predicate(input);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is<bool>(); }
bool is_true(const Value& v) { return v.is<bool>() && *v.get<bool>(); }
bool is_false(const Value& v) { return v.is<bool>() && !*v.get<bool>(); }
bool is_integer(const Value& v) { return v.is<std::int64_t>(); }
bool is_float(const Value& v) { return v.is<double>(); }
bool is_number(const Value& v) { return as_number(v).has_value(); }
bool is_string(const Value& v) { return v.is<Text>(); }
bool is_mapping(const Value& v) { return v.is<DictRef>(); }
bool is_escaped(const Value& v) { return v.text() && v.text()->is_markup(); }

bool is_sequence(const Value& v) {
  const Sequence* s = v.sequence();
  return v.text() || v.dict() || v.is_undefined() ||
         (s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple ||
                s->kind == SequenceKind::kRange));
}

bool is_callable(const Value& v) {
  if (Object* const* o = v.get<Object*>()) {
    return std::holds_alternative<Macro>((*o)->data) || std::holds_alternative<Loop>((*o)->data) ||
           std::holds_alternative<Joiner>((*o)->data);
  }
  return v.is<MethodRef>() || v.is<Builtin>() || v.is_undefined();
}

template <std::int64_t rest>
bool parity(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("parity test", arguments, {}, 0);
  return equal(runtime.budget,
               binary(runtime.budget, BinaryOp::kModulo, input, Value(std::int64_t{2})),
               Value(rest));
}

bool is_divisible(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("divisibleby", arguments, {"num"}, 1);
  return equal(runtime.budget, binary(runtime.budget, BinaryOp::kModulo, input, p.at(0)),
               Value(std::int64_t{0}));
}

// str.islower and str.isupper: some letter has the case, and none the other.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
bool has_case(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("case test", arguments, {}, 0);
  const Text text = to_text(runtime.budget, input);
  runtime.budget.scan(text.size());
  bool found = false;
  for (CodePoints at = CodePoints(runtime.budget, text).start(); !at.done(); at.next()) {
    if (other(at.value())) {
      return false;
    }
    found |= wanted(at.value());
  }
  return found;
}

bool is_same(Runtime&, const Value& input, const Arguments& arguments) {
  return same(input, Parameters("sameas", arguments, {"other"}, 1).at(0));
}

bool is_in(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return contains(runtime.budget, Parameters("in", arguments, {"seq"}, 1).at(0), input);
}

bool names_filter(Runtime&, const Value& input, const Arguments&) {
  return input.text() && filter_exists(input.text()->view());
}

bool names_test(Runtime&, const Value& input, const Arguments&) {
  return input.text() && test_exists(input.text()->view());
}

constexpr auto kTests = std::to_array<TestRow>({
    {"!=", comparing<CompareOp::kNotEqual>},
    {"<", comparing<CompareOp::kLess>},
    {"<=", comparing<CompareOp::kLessEqual>},
    {"==", comparing<CompareOp::kEqual>},
    {">", comparing<CompareOp::kGreater>},
    {">=", comparing<CompareOp::kGreaterEqual>},
    {"boolean", simple<is_boolean>},
    {"callable", simple<is_callable>},
    {"defined", simple<is_defined>},
    {"divisibleby", is_divisible},
    {"eq", comparing<CompareOp::kEqual>},
    {"equalto", comparing<CompareOp::kEqual>},
    {"escaped", simple<is_escaped>},
    {"even", parity<0>},
    {"false", simple<is_false>},
    {"filter", names_filter},
    {"float", simple<is_float>},
    {"ge", comparing<CompareOp::kGreaterEqual>},
    {"greaterthan", comparing<CompareOp::kGreater>},
    {"gt", comparing<CompareOp::kGreater>},
    {"in", is_in},
    {"integer", simple<is_integer>},
    {"iterable", simple<is_iterable>},
    {"le", comparing<CompareOp::kLessEqual>},
    {"lessthan", comparing<CompareOp::kLess>},
    {"lower", has_case<is_lower, is_upper>},
    {"lt", comparing<CompareOp::kLess>},
    {"mapping", simple<is_mapping>},
    {"ne", comparing<CompareOp::kNotEqual>},
    {"none", simple<is_none>},
    {"number", simple<is_number>},
    {"odd", parity<1>},
    {"sameas", is_same},
    {"sequence", simple<is_sequence>},
    {"string", simple<is_string>},
    {"test", names_test},
    {"true", simple<is_true>},
    {"undefined", simple<is_undefined>},
    {"upper", has_case<is_upper, is_lower>},
});
constexpr bool by_name(const TestRow& a, const TestRow& b) { return a.name < b.name; }
static_assert(std::is_sorted(kTests.begin(), kTests.end(), by_name));

const TestRow* find_test(std::string_view name) {
  const auto* row = std::lower_bound(kTests.begin(), kTests.end(), TestRow{name, nullptr}, by_name);
  return row != kTests.end() && row->name == name ? row : nullptr;
}

}  // namespace

bool test_exists(std::string_view name) { return find_test(name) != nullptr; }

bool apply_test(Runtime& runtime, std::string_view name, const Value& input,
                const Arguments& arguments) {
  runtime.budget.step();
  const TestRow* row = find_test(name);
  if (!row) {
    raise("No test named {}.", quoted(name));
  }
  return row->function(runtime, input, arguments);
}

}  // namespace godwit::chat::jinja
