// What operators beyond the language's grammar (attributes, methods, filters, tests) share: the
// budget, and lookups that jinja2's sandbox allows.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

struct Runtime {
  Budget& budget;
};

// Arguments bound to parameters by position or name, as Python binds them.
class Parameters {
 public:
  // Fails where one of the first `n_required` is missing, or an argument has no parameter.
  Parameters(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t n_required);

  // The argument; nullptr where it was not given.
  const Value* get(std::size_t index) const { return values_[index]; }
  const Value& at(std::size_t index) const { return *values_[index]; }
  // Absent or None.
  bool is_absent(std::size_t index) const { return !values_[index] || values_[index]->is_none(); }

  bool flag(std::size_t index) const;
  std::int64_t integer(std::size_t index, std::int64_t absent) const;
  const Text& text(std::size_t index) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

// object.name: methods and fields before entries. Undefined where there is neither.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// object[index]: entries before methods.
Value get_item(Runtime& runtime, const Value& object, const Value& index);

// "a.b.0" as filters take it: get_item along the path.
class AttributePath {
 public:
  AttributePath(Budget& budget, const Value& attribute);
  Value follow(Runtime& runtime, Value item) const;

 private:
  std::vector<Value> parts_;
};

Value apply_filter(Runtime& runtime, std::string_view name, const Value& input,
                   const Arguments& arguments);
bool apply_test(Runtime& runtime, std::string_view name, const Value& input,
                const Arguments& arguments);
bool filter_exists(std::string_view name);
bool test_exists(std::string_view name);

bool has_method(const Value& object, std::string_view name);
Value call_method(Runtime& runtime, const BoundMethod& method, const Arguments& arguments);

}  // namespace godwit::chat::jinja
