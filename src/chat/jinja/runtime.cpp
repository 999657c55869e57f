#include "chat/jinja/runtime.h"

#include <algorithm>
#include <charconv>

#include "chat/jinja/object.h"
#include "chat/jinja/operators.h"

namespace godwit::chat::jinja {

namespace {

// Methods that change their object. jinja2's sandbox gives an undefined instead.
bool changes_object(const Value& object, std::string_view name) {
  constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kList[] = {"append", "clear",   "extend", "insert",
                                        "pop",    "reverse", "remove", "sort"};
  const Sequence* s = object.sequence();
  const auto in = [&](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (object.dict() && in(kDict)) || (s && s->kind == SequenceKind::kList && in(kList));
}

bool is_unsafe(const Value& object, std::string_view name) {
  const bool internal = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  return internal || changes_object(object, name);
}

Value unsafe_attribute(const Value& object, std::string_view name) {
  return make_undefined(fmt::format("access to attribute {} of '{}' object is unsafe.",
                                    quoted(name), type_name(object)));
}

std::optional<Value> loop_field(Loop& loop, std::string_view name) {
  const auto index0 = static_cast<std::int64_t>(loop.index0);
  const auto depth0 = static_cast<std::int64_t>(loop.depth0);
  const auto length = [&] { return static_cast<std::int64_t>(loop.length()); };
  if (name == "index") {
    return index0 + 1;
  } else if (name == "index0") {
    return index0;
  } else if (name == "revindex") {
    return length() - index0;
  } else if (name == "revindex0") {
    return length() - index0 - 1;
  } else if (name == "first") {
    return index0 == 0;
  } else if (name == "last") {
    return !loop.reaches(loop.index0 + 1);
  } else if (name == "length") {
    return length();
  } else if (name == "depth") {
    return depth0 + 1;
  } else if (name == "depth0") {
    return depth0;
  } else if (name == "previtem") {
    return index0 > 0 ? loop.items[loop.index0 - 1] : make_undefined("there is no previous item");
  } else if (name == "nextitem") {
    return loop.reaches(loop.index0 + 1) ? loop.items[loop.index0 + 1]
                                         : make_undefined("there is no next item");
  }
  return std::nullopt;
}

std::optional<Value> object_field(Object& object, std::string_view name) {
  if (const auto* ns = std::get_if<Namespace>(&object.data)) {
    for (const auto& [key, value] : ns->attributes) {
      if (key == name) {
        return value;
      }
    }
  } else if (auto* loop = std::get_if<Loop>(&object.data)) {
    return loop_field(*loop, name);
  } else if (const auto* cycler = std::get_if<Cycler>(&object.data); cycler && name == "current") {
    return cycler->items[cycler->position];
  }
  return std::nullopt;
}

// What Python's getattr finds.
std::optional<Value> own_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (Object* const* o = object.get<Object*>()) {
    if (auto field = object_field(**o, name)) {
      return field;
    }
  }
  if (const Sequence* s = object.sequence(); s && s->is_group) {
    if (name == "grouper" || name == "list") {
      return s->items[name == "grouper" ? 0 : 1];
    }
  }
  if (is_unsafe(object, name)) {
    return unsafe_attribute(object, name);
  }
  if (has_method(object, name)) {
    runtime.budget.allocate(sizeof(BoundMethod));
    return Value(std::make_shared<const BoundMethod>(object, std::string(name)));
  }
  return std::nullopt;
}

Value missing_element(const Value& object, const Value& index) {
  const std::string type = object.is_none() ? "None" : fmt::format("{} object", type_name(object));
  const auto position = as_integer(index);
  return make_undefined(fmt::format(
      "{} has no element {}", type,
      position ? fmt::format("{}", *position) : fmt::format("of type {}", type_name(index))));
}

}  // namespace

Parameters::Parameters(std::string_view function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t n_required)
    : function_(function), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size()) {
    raise("{}() takes at most {} arguments, found {}", function, names.size(),
          arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || name.empty()) {
      raise("{}() got an unexpected keyword argument {}", function, quoted(name));
    }
    const Value*& slot = values_[static_cast<std::size_t>(found - names.begin())];
    if (slot) {
      raise("{}() got multiple values for argument {}", function, quoted(name));
    }
    slot = &value;
  }
  for (std::size_t i = 0; i < n_required; ++i) {
    if (!values_[i]) {
      raise("{}() missing required argument '{}'", function, *(names.begin() + i));
    }
  }
}

bool Parameters::flag(std::size_t index) const { return values_[index] && truthy(*values_[index]); }

std::int64_t Parameters::integer(std::size_t index, std::int64_t absent) const {
  if (!values_[index]) {
    return absent;
  }
  const auto value = as_integer(*values_[index]);
  if (!value) {
    if (values_[index]->is_undefined()) {
      raise_undefined(*values_[index]);
    }
    raise("{}() expected an integer, found {}", function_, type_name(*values_[index]));
  }
  return *value;
}

const Text& Parameters::text(std::size_t index) const {
  const Text* text = values_[index]->text();
  if (!text) {
    if (values_[index]->is_undefined()) {
      raise_undefined(*values_[index]);
    }
    raise("{}() expected a str, found {}", function_, type_name(*values_[index]));
  }
  return *text;
}

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  runtime.budget.step();
  if (object.is_undefined()) {
    raise_undefined(object);
  }
  if (auto own = own_attribute(runtime, object, name)) {
    return *std::move(own);
  }
  if (const Dict* dict = object.dict()) {
    if (const Value* found = find_key(runtime.budget, *dict, name)) {
      return *found;
    }
  }
  return missing_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& index) {
  runtime.budget.step();
  if (auto found = subscript(runtime.budget, object, index)) {
    return *std::move(found);
  }
  if (const Text* name = index.text()) {
    if (auto own = own_attribute(runtime, object, name->view())) {
      return *std::move(own);
    }
    return missing_attribute(object, name->view());
  }
  return missing_element(object, index);
}

AttributePath::AttributePath(Budget& budget, const Value& attribute) {
  const Text* text = attribute.text();
  if (!text) {
    if (!attribute.is_none()) {
      parts_.push_back(attribute);
    }
    return;
  }
  std::string_view rest = text->view();
  while (true) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    budget.allocate(sizeof(Value) + part.size());
    budget.step();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number =
        error == std::errc{} && end == part.data() + part.size() && !part.empty() && part[0] != '-';
    parts_.push_back(is_number ? Value(number) : make_text(part));
    if (part.size() == rest.size()) {
      return;
    }
    rest.remove_prefix(part.size() + 1);
  }
}

Value AttributePath::follow(Runtime& runtime, Value item) const {
  for (const Value& part : parts_) {
    item = get_item(runtime, item, part);
  }
  return item;
}

}  // namespace godwit::chat::jinja
