// Python's operators on values: truth, comparison, arithmetic, membership, subscripts, iteration.
// Integers have 64 bits; what does not fit is an error.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

bool truthy(const Value& value);
bool equal(Budget& budget, const Value& a, const Value& b);
// a < b; fails where Python has no order.
bool less(Budget& budget, const Value& a, const Value& b, std::string_view op);
bool same(const Value& a, const Value& b);  // Python's `is`
bool compare(Budget& budget, CompareOp op, const Value& a, const Value& b);
bool contains(Budget& budget, const Value& container, const Value& item);

Value binary(Budget& budget, BinaryOp op, const Value& a, const Value& b);
Value unary(UnaryOp op, const Value& operand);

// An int, or a bool as one.
std::optional<std::int64_t> as_integer(const Value& value);
// An int, bool or float.
std::optional<double> as_number(const Value& value);

// The items of anything that can be iterated; an iterator is used up by it.
std::vector<Value> iterate(Budget& budget, const Value& value);
bool is_iterable(const Value& value);
// len(); nothing where Python has none.
std::optional<std::size_t> length(Budget& budget, const Value& value);

// object[index], as Python does it; nothing where Python raises.
std::optional<Value> subscript(Budget& budget, const Value& object, const Value& index);
struct SliceBounds {
  Value start, stop, step;  // None where left out
};
std::optional<Value> slice(Budget& budget, const Value& object, const SliceBounds& bounds);

// Sets an entry, or replaces it in place. Fails for keys that Python cannot hash.
void set_entry(Budget& budget, std::vector<std::pair<Value, Value>>& entries, const Value& key,
               Value value);
void check_hashable(Budget& budget, const Value& key);

}  // namespace godwit::chat::jinja
