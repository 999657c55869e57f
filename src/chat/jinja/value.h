// The values of a template, with Python's types and meanings. Containers are immutable and shared,
// so they cannot form cycles; whatever can change or can refer back (namespaces, macros, loops) is
// an Object, owned by the evaluator until the end of the rendering and only pointed at from here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/text.h"

namespace godwit::chat::jinja {

class Value;
struct Object;

struct None {};

// A missing variable or attribute: prints as nothing, fails with its message when used.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

// What Python would call the sequence: it decides how it prints and what it can do.
enum class SequenceKind {
  kList,
  kTuple,
  kRange,
  kKeys,
  kValues,
  kItems,
  kIterator,  // a generator: one pass, no length, always true
};

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  std::size_t depth = 0;  // containers below this one
  // kRange only, for printing.
  std::int64_t start = 0, stop = 0, step = 1;
  // groupby's tuples have the fields grouper and list.
  bool is_group = false;
  // kIterator only: how many items have been taken. The one thing that changes in a container;
  // it cannot make a cycle.
  mutable std::size_t taken = 0;
};

// In order of insertion, as Python's. Few entries, so lookups walk them (and pay for it).
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::size_t depth = 0;
};

struct BoundMethod;  // "text".strip, waiting to be called
using SequenceRef = std::shared_ptr<const Sequence>;
using DictRef = std::shared_ptr<const Dict>;
using MethodRef = std::shared_ptr<const BoundMethod>;

// The globals that can be called.
enum class Builtin { kRange, kDict, kNamespace, kCycler, kJoiner, kRaiseException, kStrftimeNow };

class Value {
 public:
  using Data = std::variant<Undefined, None, bool, std::int64_t, double, Text, SequenceRef, DictRef,
                            MethodRef, Builtin, Object*>;

  Value() : data_(None{}) {}
  // Implicit on purpose: a value is whichever of these it was made from.
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<Data, T> &&
             !std::is_pointer_v<std::remove_cvref_t<T>>)
  Value(T&& data) : data_(std::forward<T>(data)) {}  // NOLINT(google-explicit-constructor)
  Value(Object* object) : data_(object) {}           // NOLINT(google-explicit-constructor)

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  const Data& data() const { return data_; }

  const Text* text() const { return get<Text>(); }
  const Sequence* sequence() const {
    const auto* ref = get<SequenceRef>();
    return ref ? ref->get() : nullptr;
  }
  const Dict* dict() const {
    const auto* ref = get<DictRef>();
    return ref ? ref->get() : nullptr;
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }

 private:
  Data data_;
};

struct BoundMethod {
  Value self;
  std::string name;
};

// Arguments of a call, a filter or a test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The factories pay the budget and refuse nesting beyond kMaxValueDepth.
Value make_sequence(Budget& budget, SequenceKind kind, std::vector<Value> items);
Value make_list(Budget& budget, std::vector<Value> items);
Value make_tuple(Budget& budget, std::vector<Value> items);
Value make_iterator(Budget& budget, std::vector<Value> items);
Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries);
Value make_text(std::string_view plain);
Value make_undefined(std::string message);

// Fails with the message of an undefined value.
[[noreturn]] void raise_undefined(const Value& value);

// Python's name of the type: "int", "str", "NoneType".
std::string_view type_name(const Value& value);

// Like jinja2's Undefined for an attribute or an element that is not there.
Value missing_attribute(const Value& object, std::string_view name);

// Python's repr of a plain string, for messages.
std::string quoted(std::string_view text);

// An entry of a dict by string key; nullptr where there is none.
const Value* find_key(Budget& budget, const Dict& dict, std::string_view key);

}  // namespace godwit::chat::jinja
