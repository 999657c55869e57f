#include "chat/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "chat/jinja/object.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_search.h"
#include "chat/jinja/unicode.h"

namespace godwit::chat::jinja {

namespace {

// Sequences equal only their own kind, except that nothing equals an iterator but itself.
bool equal_sequences(Budget& budget, const Sequence& a, const Sequence& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) {
    return false;
  }
  if (a.kind == SequenceKind::kIterator || a.kind == SequenceKind::kValues) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(budget, a.items[i], b.items[i])) {
      return false;
    }
  }
  return true;
}

const Value* find_entry(Budget& budget, const std::vector<std::pair<Value, Value>>& entries,
                        const Value& key) {
  for (const auto& [k, v] : entries) {
    if (equal(budget, k, key)) {
      return &v;
    }
  }
  return nullptr;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) {
    return false;
  }
  for (const auto& [key, value] : a.entries) {
    const Value* other = find_entry(budget, b.entries, key);
    if (!other || !equal(budget, value, *other)) {
      return false;
    }
  }
  return true;
}

bool contains_text(Budget& budget, const Text& text, const Value& item) {
  const Text* part = item.text();
  if (!part) {
    raise("'in <string>' requires string as left operand, not {}", type_name(item));
  }
  return find_text(budget, text.view(), part->view(), SearchFrom::kLeft) != TextSearch::kNone;
}

}  // namespace

bool truthy(const Value& value) {
  if (const Text* text = value.text()) {
    return !text->empty();
  }
  if (const Sequence* sequence = value.sequence()) {
    return sequence->kind == SequenceKind::kIterator || !sequence->items.empty();
  }
  if (const Dict* dict = value.dict()) {
    return !dict->entries.empty();
  }
  if (const auto* b = value.get<bool>()) {
    return *b;
  }
  if (const auto* i = value.get<std::int64_t>()) {
    return *i != 0;
  }
  if (const auto* d = value.get<double>()) {
    return *d != 0;
  }
  return !value.is_undefined() && !value.is_none();
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (const auto* i = value.get<std::int64_t>()) {
    return *i;
  }
  if (const auto* b = value.get<bool>()) {
    return *b ? 1 : 0;
  }
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* d = value.get<double>()) {
    return *d;
  }
  if (const auto i = as_integer(value)) {
    return static_cast<double>(*i);
  }
  return std::nullopt;
}

bool same(const Value& a, const Value& b) {
  if (a.data().index() != b.data().index()) {
    return false;
  }
  if (const auto* s = a.get<SequenceRef>()) {
    return *s == *b.get<SequenceRef>();
  }
  if (const auto* d = a.get<DictRef>()) {
    return *d == *b.get<DictRef>();
  }
  if (const auto* m = a.get<MethodRef>()) {
    return *m == *b.get<MethodRef>();
  }
  if (const auto* o = a.get<Object*>()) {
    return *o == *b.get<Object*>();
  }
  if (const auto* f = a.get<Builtin>()) {
    return *f == *b.get<Builtin>();
  }
  if (const Text* t = a.text()) {
    return t->view() == b.text()->view();
  }
  if (a.is_none() || a.is_undefined()) {
    return a.is_none();
  }
  return as_number(a) == as_number(b);
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  const Budget::Level nested(budget);
  budget.step();
  if (const Text* x = a.text()) {
    const Text* y = b.text();
    budget.scan(y && x->size() == y->size() ? x->size() : 0);
    return y && x->view() == y->view();
  }
  if (const auto i = as_integer(a), j = as_integer(b); i && j) {
    return *i == *j;
  }
  if (const auto x = as_number(a), y = as_number(b); x && y) {
    return *x == *y;
  }
  if (a.sequence() && b.sequence()) {
    return a.sequence() == b.sequence() || equal_sequences(budget, *a.sequence(), *b.sequence());
  }
  if (a.dict() && b.dict()) {
    return a.dict() == b.dict() || equal_dicts(budget, *a.dict(), *b.dict());
  }
  if (a.is_undefined() && b.is_undefined()) {
    return true;
  }
  return same(a, b);
}

bool less(Budget& budget, const Value& a, const Value& b, std::string_view op) {
  const Budget::Level nested(budget);
  budget.step();
  if (a.is_undefined() || b.is_undefined()) {
    raise_undefined(a.is_undefined() ? a : b);
  }
  if (const auto i = as_integer(a), j = as_integer(b); i && j) {
    return *i < *j;
  }
  if (const auto x = as_number(a), y = as_number(b); x && y) {
    return *x < *y;
  }
  if (a.text() && b.text()) {
    // UTF-8 sorts as its code points do.
    budget.scan(std::min(a.text()->size(), b.text()->size()));
    return a.text()->view() < b.text()->view();
  }
  const Sequence* s = a.sequence();
  const Sequence* t = b.sequence();
  const bool ordered = s && t && s->kind == t->kind &&
                       (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple);
  if (!ordered) {
    raise("'{}' not supported between instances of '{}' and '{}'", op, type_name(a), type_name(b));
  }
  for (std::size_t i = 0; i < std::min(s->items.size(), t->items.size()); ++i) {
    if (!equal(budget, s->items[i], t->items[i])) {
      return less(budget, s->items[i], t->items[i], op);
    }
  }
  return s->items.size() < t->items.size();
}

bool compare(Budget& budget, CompareOp op, const Value& a, const Value& b) {
  const auto nan = [](const Value& v) { return v.is<double>() && std::isnan(*v.get<double>()); };
  const bool unordered = nan(a) || nan(b);
  switch (op) {
    case CompareOp::kEqual:
      return equal(budget, a, b);
    case CompareOp::kNotEqual:
      return !equal(budget, a, b);
    case CompareOp::kLess:
      return less(budget, a, b, "<");
    case CompareOp::kLessEqual:
      return !less(budget, b, a, "<=") && !unordered;
    case CompareOp::kGreater:
      return less(budget, b, a, ">");
    case CompareOp::kGreaterEqual:
      return !less(budget, a, b, ">=") && !unordered;
    case CompareOp::kIn:
      return contains(budget, b, a);
    case CompareOp::kNotIn:
      return !contains(budget, b, a);
  }
  return false;
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  budget.step();
  if (const Text* text = container.text()) {
    return contains_text(budget, *text, item);
  }
  if (const Dict* dict = container.dict()) {
    check_hashable(budget, item);
    return find_entry(budget, dict->entries, item) != nullptr;
  }
  if (!is_iterable(container)) {
    raise("argument of type '{}' is not iterable", type_name(container));
  }
  if (const Sequence* s = container.sequence(); s && s->kind != SequenceKind::kIterator) {
    return std::any_of(s->items.begin(), s->items.end(),
                       [&](const Value& v) { return equal(budget, v, item); });
  }
  const std::vector<Value> items = iterate(budget, container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& v) { return equal(budget, v, item); });
}

bool is_iterable(const Value& value) {
  if (Object* const* object = value.get<Object*>()) {
    return std::holds_alternative<Loop>((*object)->data);
  }
  return value.text() || value.sequence() || value.dict() || value.is_undefined();
}

std::vector<Value> iterate(Budget& budget, const Value& value) {
  std::vector<Value> out;
  if (const Sequence* s = value.sequence()) {
    const std::size_t from = s->kind == SequenceKind::kIterator ? s->taken : 0;
    budget.allocate((s->items.size() - from) * sizeof(Value));
    out.assign(s->items.begin() + static_cast<std::ptrdiff_t>(from), s->items.end());
    s->taken = s->kind == SequenceKind::kIterator ? s->items.size() : 0;
  } else if (const Dict* dict = value.dict()) {
    budget.allocate(dict->entries.size() * sizeof(Value));
    for (const auto& [key, entry] : dict->entries) {
      out.push_back(key);
    }
  } else if (const Text* text = value.text()) {
    for (CodePoints at = CodePoints(budget, *text).start(); !at.done(); at.next()) {
      budget.allocate(sizeof(Value) + sizeof(MarkedText));
      out.push_back(substring(budget, *text, at.begin(), at.end()).as_markup(false));
    }
  } else if (!value.is_undefined()) {
    raise("'{}' object is not iterable", type_name(value));
  }
  return out;
}

std::optional<std::size_t> length(Budget& budget, const Value& value) {
  if (const Text* text = value.text()) {
    text->pay_to_count(budget);
    return text->length();
  }
  if (const Sequence* s = value.sequence(); s && s->kind != SequenceKind::kIterator) {
    return s->items.size();
  }
  if (const Dict* dict = value.dict()) {
    return dict->entries.size();
  }
  if (value.is_undefined()) {
    return 0;
  }
  if (Object* const* object = value.get<Object*>()) {
    if (auto* loop = std::get_if<Loop>(&(*object)->data)) {
      return loop->length();
    }
  }
  return std::nullopt;
}

void check_hashable(Budget& budget, const Value& key) {
  budget.step();  // a tuple that holds one twice can hold it 2^99 times
  const Sequence* s = key.sequence();
  if (key.dict() || (s && s->kind == SequenceKind::kList)) {
    raise("unhashable type: '{}'", type_name(key));
  }
  if (s && s->kind == SequenceKind::kTuple) {
    for (const Value& item : s->items) {
      check_hashable(budget, item);
    }
  }
}

void set_entry(Budget& budget, std::vector<std::pair<Value, Value>>& entries, const Value& key,
               Value value) {
  check_hashable(budget, key);
  for (auto& [k, v] : entries) {
    if (equal(budget, k, key)) {
      v = std::move(value);
      return;
    }
  }
  budget.allocate(2 * sizeof(Value));
  entries.emplace_back(key, std::move(value));
}

std::optional<Value> subscript(Budget& budget, const Value& object, const Value& index) {
  if (object.is_undefined()) {
    raise_undefined(object);
  }
  if (const Dict* dict = object.dict()) {
    const Sequence* s = index.sequence();
    if (index.dict() || (s && s->kind == SequenceKind::kList)) {
      return std::nullopt;
    }
    const Value* found = index.text() ? find_key(budget, *dict, index.text()->view())
                                      : find_entry(budget, dict->entries, index);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto position = as_integer(index);
  const Sequence* s = object.sequence();
  const bool indexable =
      object.text() || (s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple ||
                              s->kind == SequenceKind::kRange));
  if (!position || !indexable) {
    return std::nullopt;
  }
  const auto size = static_cast<std::int64_t>(*length(budget, object));
  const std::int64_t at = *position < 0 ? *position + size : *position;
  if (at < 0 || at >= size) {
    return std::nullopt;
  }
  if (s) {
    return s->items[static_cast<std::size_t>(at)];
  }
  const Text& text = *object.text();
  text.pay_to_count(budget);
  const std::size_t begin = text.offset_of(static_cast<std::size_t>(at));
  const Decoded decoded = decode_utf8(text.view().substr(begin));
  return substring(budget, text, begin, begin + static_cast<std::size_t>(decoded.length));
}

namespace {

// Python's slice.indices().
struct Indices {
  std::int64_t start, stop, step;
};

Indices indices(const SliceBounds& bounds, std::int64_t size) {
  const auto bound = [&](const Value& value, std::int64_t absent, std::int64_t lowest,
                         std::int64_t highest) {
    if (value.is_none()) {
      return absent;
    }
    const auto i = as_integer(value);
    if (!i) {
      raise("slice indices must be integers or None or have an __index__ method");
    }
    return std::clamp(*i < 0 ? *i + size : *i, lowest, highest);
  };
  const std::int64_t step = bounds.step.is_none() ? 1 : as_integer(bounds.step).value_or(0);
  if (step == 0) {
    raise("slice step must be a non-zero integer");
  }
  if (step > 0) {
    return {bound(bounds.start, 0, 0, size), bound(bounds.stop, size, 0, size), step};
  }
  return {bound(bounds.start, size - 1, -1, size - 1), bound(bounds.stop, -1, -1, size - 1), step};
}

Value slice_text(Budget& budget, const Text& text, const Indices& at, std::int64_t size) {
  text.pay_to_count(budget);
  if (at.step == 1) {
    const std::int64_t stop = std::max(at.start, at.stop);
    return substring(budget, text, text.offset_of(static_cast<std::size_t>(at.start)),
                     text.offset_of(static_cast<std::size_t>(stop)));
  }
  std::vector<std::size_t> offsets;
  budget.allocate(static_cast<std::uint64_t>(size) * sizeof(std::size_t));
  for (CodePoints p = CodePoints(budget, text).start(); !p.done(); p.next()) {
    offsets.push_back(p.begin());
  }
  offsets.push_back(text.size());
  TextBuilder out(budget);
  for (std::int64_t i = at.start; at.step > 0 ? i < at.stop : i > at.stop; i += at.step) {
    out.append(text, offsets[static_cast<std::size_t>(i)],
               offsets[static_cast<std::size_t>(i) + 1]);
    if (at.step > 0 ? i > size - at.step : i < -at.step) {
      break;  // the next one is outside; i + step need not fit in 64 bits
    }
  }
  return out.finish().as_markup(text.is_markup());
}

}  // namespace

std::optional<Value> slice(Budget& budget, const Value& object, const SliceBounds& bounds) {
  if (object.is_undefined()) {
    raise_undefined(object);
  }
  const Sequence* s = object.sequence();
  const bool sliceable =
      object.text() || (s && (s->kind == SequenceKind::kList || s->kind == SequenceKind::kTuple ||
                              s->kind == SequenceKind::kRange));
  if (!sliceable) {
    return std::nullopt;
  }
  const auto size = static_cast<std::int64_t>(*length(budget, object));
  const Indices at = indices(bounds, size);
  if (const Text* text = object.text()) {
    return slice_text(budget, *text, at, size);
  }
  std::vector<Value> items;
  for (std::int64_t i = at.start; at.step > 0 ? i < at.stop : i > at.stop; i += at.step) {
    budget.step();
    items.push_back(s->items[static_cast<std::size_t>(i)]);
    if (at.step > 0 ? i > size - at.step : i < -at.step) {
      break;
    }
  }
  return make_sequence(budget, s->kind == SequenceKind::kTuple ? s->kind : SequenceKind::kList,
                       std::move(items));
}

}  // namespace godwit::chat::jinja
