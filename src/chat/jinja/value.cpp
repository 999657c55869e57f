#include "chat/jinja/value.h"

#include <algorithm>

#include "chat/jinja/object.h"
#include "chat/jinja/printing.h"

namespace godwit::chat::jinja {

namespace {

std::size_t depth_of(const Value& value) {
  if (const Sequence* s = value.sequence()) {
    return s->depth + 1;
  }
  if (const Dict* d = value.dict()) {
    return d->depth + 1;
  }
  if (const auto* m = value.get<MethodRef>()) {
    return depth_of((*m)->self) + 1;
  }
  return 0;
}

void check_depth(std::size_t depth) {
  if (depth >= kMaxValueDepth) {
    raise("a value is nested more than {} levels deep", kMaxValueDepth);
  }
}

std::string_view sequence_type(const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kKeys:
      return "dict_keys";
    case SequenceKind::kValues:
      return "dict_values";
    case SequenceKind::kItems:
      return "dict_items";
    case SequenceKind::kIterator:
      return "generator";
  }
  return "";
}

std::string_view object_type(const Object& object) {
  constexpr std::string_view kNames[] = {"Namespace", "Macro", "LoopContext", "Cycler", "Joiner"};
  return kNames[object.data.index()];
}

}  // namespace

Value make_sequence(Budget& budget, SequenceKind kind, std::vector<Value> items) {
  budget.allocate(sizeof(Sequence) + items.size() * sizeof(Value));
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  for (const Value& item : items) {
    sequence->depth = std::max(sequence->depth, depth_of(item));
  }
  check_depth(sequence->depth);
  sequence->items = std::move(items);
  return SequenceRef(std::move(sequence));
}

Value make_list(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, SequenceKind::kList, std::move(items));
}

Value make_tuple(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, SequenceKind::kTuple, std::move(items));
}

Value make_iterator(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, SequenceKind::kIterator, std::move(items));
}

Value make_dict(Budget& budget, std::vector<std::pair<Value, Value>> entries) {
  budget.allocate(sizeof(Dict) + entries.size() * 2 * sizeof(Value));
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : entries) {
    dict->depth = std::max({dict->depth, depth_of(key), depth_of(value)});
  }
  check_depth(dict->depth);
  dict->entries = std::move(entries);
  return DictRef(std::move(dict));
}

Value make_text(std::string_view plain) { return Text(plain); }

Value make_undefined(std::string message) {
  return Undefined{std::make_shared<const std::string>(std::move(message))};
}

void raise_undefined(const Value& value) {
  const auto* undefined = value.get<Undefined>();
  throw RenderError{undefined && undefined->message ? *undefined->message : "value is undefined"};
}

std::string_view type_name(const Value& value) {
  constexpr std::string_view kNames[] = {"Undefined", "NoneType", "bool", "int",    "float",
                                         "str",       "",         "dict", "method", "function"};
  if (const Text* text = value.text(); text && text->is_markup()) {
    return "Markup";
  }
  if (const Sequence* sequence = value.sequence()) {
    return sequence_type(*sequence);
  }
  if (Object* const* object = value.get<Object*>()) {
    return object_type(**object);
  }
  return kNames[value.data().index()];
}

Value missing_attribute(const Value& object, std::string_view name) {
  std::string type = fmt::format("{} object", type_name(object));
  if (object.is_none()) {
    type = "None";
  } else if (Object* const* o = object.get<Object*>()) {
    constexpr std::string_view kModules[] = {"jinja2.utils", "jinja2.runtime", "jinja2.runtime",
                                             "jinja2.utils", "jinja2.utils"};
    type = fmt::format("{}.{} object", kModules[(*o)->data.index()], type_name(object));
  }
  return make_undefined(fmt::format("'{}' has no attribute {}", type, quoted(name)));
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kShown = 200;
  Budget budget{RenderLimits{}};
  TextBuilder out(budget);
  append_repr(budget, out, Text(text.substr(0, kShown)));
  return out.finish_marked().text;
}

const Value* find_key(Budget& budget, const Dict& dict, std::string_view key) {
  budget.step(1 + dict.entries.size() / 8);
  for (const auto& [k, v] : dict.entries) {
    const Text* text = k.text();
    if (!text || text->size() != key.size()) continue;
    budget.scan(key.size());
    if (text->view() == key) {
      return &v;
    }
  }
  return nullptr;
}

}  // namespace godwit::chat::jinja
