#include <algorithm>
#include <array>
#include <span>

#include "chat/jinja/object.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/runtime.h"
#include "chat/jinja/text_methods.h"

namespace godwit::chat::jinja {

namespace {

using MethodFunction = Value (*)(Runtime&, const Value&, const Arguments&);
struct MethodRow {
  std::string_view name;
  MethodFunction function;
};

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Parameters p("get", arguments, {"", ""}, 1);
  check_hashable(runtime.budget, p.at(0));
  if (auto found = subscript(runtime.budget, self, p.at(0))) {
    return *std::move(found);
  }
  return p.get(1) ? p.at(1) : Value();
}

Value dict_view(Runtime& runtime, const Value& self, const Arguments& arguments,
                SequenceKind kind) {
  const Parameters p("view", arguments, {}, 0);
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict()->entries) {
    if (kind == SequenceKind::kItems) {
      out.push_back(make_tuple(runtime.budget, {key, value}));
    } else {
      out.push_back(kind == SequenceKind::kKeys ? key : value);
    }
  }
  return make_sequence(runtime.budget, kind, std::move(out));
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::kItems);
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::kKeys);
}

Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return dict_view(runtime, self, arguments, SequenceKind::kValues);
}

// Nothing changes a value, so a copy is the value itself.
Value copy(Runtime&, const Value& self, const Arguments& arguments) {
  const Parameters p("copy", arguments, {}, 0);
  return self;
}

Value sequence_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {""}, 1);
  std::int64_t n = 0;
  for (const Value& item : self.sequence()->items) {
    n += equal(runtime.budget, item, p.at(0)) ? 1 : 0;
  }
  return n;
}

Value sequence_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Parameters p("index", arguments, {""}, 1);
  const std::vector<Value>& items = self.sequence()->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(runtime.budget, items[i], p.at(0))) {
      return static_cast<std::int64_t>(i);
    }
  }
  raise("{} is not in the {}", to_text(runtime.budget, p.at(0)).view(), type_name(self));
}

// loop.cycle('a', 'b'): one of the arguments by the loop's index.
Value loop_cycle(Runtime&, const Value& self, const Arguments& arguments) {
  const auto& loop = std::get<Loop>((*self.get<Object*>())->data);
  if (arguments.positional.empty()) {
    raise("no items for cycling given");
  }
  return arguments.positional[loop.index0 % arguments.positional.size()];
}

// loop.changed(x): other arguments than at the last call?
Value loop_changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  auto& loop = std::get<Loop>((*self.get<Object*>())->data);
  const std::vector<Value>& values = arguments.positional;
  const bool changed = !loop.last_changed ||
                       !std::equal(values.begin(), values.end(), loop.last_changed->begin(),
                                   loop.last_changed->end(), [&](const Value& a, const Value& b) {
                                     return equal(runtime.budget, a, b);
                                   });
  loop.last_changed = values;
  return changed;
}

Value cycler_next(Runtime&, const Value& self, const Arguments& arguments) {
  const Parameters p("next", arguments, {}, 0);
  auto& cycler = std::get<Cycler>((*self.get<Object*>())->data);
  const std::size_t at = cycler.position;
  cycler.position = (at + 1) % cycler.items.size();
  return cycler.items[at];
}

Value cycler_reset(Runtime&, const Value& self, const Arguments& arguments) {
  const Parameters p("reset", arguments, {}, 0);
  std::get<Cycler>((*self.get<Object*>())->data).position = 0;
  return Value();
}

constexpr auto kDictMethods = std::to_array<MethodRow>({
    {"copy", copy},
    {"get", dict_get},
    {"items", dict_items},
    {"keys", dict_keys},
    {"values", dict_values},
});
constexpr auto kSequenceMethods = std::to_array<MethodRow>({
    {"copy", copy},
    {"count", sequence_count},
    {"index", sequence_index},
});
constexpr auto kLoopMethods = std::to_array<MethodRow>({
    {"changed", loop_changed},
    {"cycle", loop_cycle},
});
constexpr auto kCyclerMethods = std::to_array<MethodRow>({
    {"next", cycler_next},
    {"reset", cycler_reset},
});

const MethodRow* find_row(std::span<const MethodRow> rows, std::string_view name) {
  for (const MethodRow& row : rows) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

const MethodRow* find_method(const Value& object, std::string_view name) {
  if (object.dict()) {
    return find_row(kDictMethods, name);
  }
  if (const Sequence* s = object.sequence()) {
    const bool list = s->kind == SequenceKind::kList;
    const bool other = s->kind == SequenceKind::kTuple || s->kind == SequenceKind::kRange;
    return (list || (other && name != "copy")) ? find_row(kSequenceMethods, name) : nullptr;
  }
  if (Object* const* o = object.get<Object*>()) {
    return std::holds_alternative<Loop>((*o)->data)     ? find_row(kLoopMethods, name)
           : std::holds_alternative<Cycler>((*o)->data) ? find_row(kCyclerMethods, name)
                                                        : nullptr;
  }
  return nullptr;
}

}  // namespace

bool has_method(const Value& object, std::string_view name) {
  return object.text() ? text_method_exists(name) : find_method(object, name) != nullptr;
}

Value call_method(Runtime& runtime, const BoundMethod& method, const Arguments& arguments) {
  runtime.budget.step();
  if (method.self.text()) {
    return call_text_method(runtime, *method.self.text(), method.name, arguments);
  }
  const MethodRow* row = find_method(method.self, method.name);
  if (!row) {
    raise("'{}' object has no method {}", type_name(method.self), quoted(method.name));
  }
  return row->function(runtime, method.self, arguments);
}

}  // namespace godwit::chat::jinja
