#include <algorithm>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_operations.h"

namespace godwit::chat::jinja::filters {

namespace {

// What map, select and their like do to an item: arguments but the first `n` pass on.
Arguments without_first(const Arguments& arguments, std::size_t n) {
  Arguments out;
  out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(n),
                        arguments.positional.end());
  out.named = arguments.named;
  return out;
}

const Text& name_argument(const Arguments& arguments, std::size_t index, std::string_view filter) {
  const Text* name =
      index < arguments.positional.size() ? arguments.positional[index].text() : nullptr;
  if (!name) {
    raise("{}() expected the name of a filter, test or attribute", filter);
  }
  return *name;
}

// map, select and their like look at their input only where it is true: None has no items.
std::vector<Value> items_if_true(Budget& budget, const Value& input) {
  return truthy(input) ? iterate(budget, input) : std::vector<Value>{};
}

enum class Keep { kMatching, kOthers };

Value choose(Runtime& runtime, const Value& input, const Arguments& arguments, Keep keep) {
  std::vector<Value> out;
  const bool has_test = !arguments.positional.empty();
  const Arguments rest = has_test ? without_first(arguments, 1) : Arguments{};
  for (Value& item : items_if_true(runtime.budget, input)) {
    const bool matches =
        has_test ? apply_test(runtime, name_argument(arguments, 0, "select").view(), item, rest)
                 : truthy(item);
    if (matches == (keep == Keep::kMatching)) {
      out.push_back(std::move(item));
    }
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value choose_by_attribute(Runtime& runtime, const Value& input, const Arguments& arguments,
                          Keep keep) {
  if (arguments.positional.empty()) {
    raise("Missing parameter for attribute name");
  }
  const AttributePath path(runtime.budget, arguments.positional[0]);
  const bool has_test = arguments.positional.size() > 1;
  const Arguments rest = has_test ? without_first(arguments, 2) : Arguments{};
  std::vector<Value> out;
  for (Value& item : items_if_true(runtime.budget, input)) {
    const Value attribute = path.follow(runtime, item);
    const bool matches =
        has_test
            ? apply_test(runtime, name_argument(arguments, 1, "selectattr").view(), attribute, rest)
            : truthy(attribute);
    if (matches == (keep == Keep::kMatching)) {
      out.push_back(std::move(item));
    }
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("map", arguments, {"attribute", "default"}, 1);
  const AttributePath path(runtime.budget, p.at(0));
  std::vector<Value> out;
  for (Value& item : items_if_true(runtime.budget, input)) {
    Value found = path.follow(runtime, std::move(item));
    if (found.is_undefined() && !p.is_absent(1)) found = p.at(1);
    out.push_back(std::move(found));
  }
  return make_iterator(runtime.budget, std::move(out));
}

std::size_t positive(std::int64_t n, std::string_view what) {
  if (n < 1) {
    raise("{} expected a number of at least 1, found {}", what, n);
  }
  return static_cast<std::size_t>(n);
}

}  // namespace

Value batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::size_t size = positive(p.integer(0, 1), "batch()");
  const std::vector<Value> items = iterate(runtime.budget, input);
  std::vector<Value> out;
  for (std::size_t begin = 0; begin < items.size();) {
    const std::size_t n = std::min(size, items.size() - begin);
    const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
    std::vector<Value> row(first, first + static_cast<std::ptrdiff_t>(n));
    if (!p.is_absent(1) && n < size) {
      runtime.budget.allocate((size - n) * sizeof(Value));
      row.resize(size, p.at(1));
    }
    out.push_back(make_list(runtime.budget, std::move(row)));
    begin += n;
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value slice_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("slice", arguments, {"slices", "fill_with"}, 1);
  const std::size_t n_slices = positive(p.integer(0, 1), "slice()");
  const std::vector<Value> items = iterate(runtime.budget, input);
  runtime.budget.allocate(n_slices);
  const std::size_t per_slice = items.size() / n_slices;
  const std::size_t n_longer = items.size() % n_slices;
  std::vector<Value> out;
  auto at = items.begin();
  for (std::size_t i = 0; i < n_slices; ++i) {
    const auto end = at + static_cast<std::ptrdiff_t>(per_slice + (i < n_longer ? 1 : 0));
    std::vector<Value> column(at, end);
    if (!p.is_absent(1) && i >= n_longer) {
      column.push_back(p.at(1));
    }
    out.push_back(make_list(runtime.budget, std::move(column)));
    at = end;
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("first", arguments, {}, 0);
  if (const Sequence* s = input.sequence(); s && s->kind == SequenceKind::kIterator) {
    if (s->taken < s->items.size()) {
      return s->items[s->taken++];
    }
  } else {
    const std::vector<Value> items = iterate(runtime.budget, input);
    if (!items.empty()) {
      return items.front();
    }
  }
  return make_undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("last", arguments, {}, 0);
  if (const Sequence* s = input.sequence(); s && s->kind == SequenceKind::kIterator) {
    raise("'generator' object is not reversible");
  }
  if (input.is_undefined()) {
    raise_undefined(input);
  }
  const std::vector<Value> items = iterate(runtime.budget, input);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.back();
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("items", arguments, {}, 0);
  if (input.is_undefined()) {
    return make_iterator(runtime.budget, {});
  }
  const Dict* dict = input.dict();
  if (!dict) {
    raise("Can only get item pairs from a mapping.");
  }
  std::vector<Value> out;
  for (const auto& [key, value] : dict->entries) {
    out.push_back(make_tuple(runtime.budget, {key, value}));
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value join_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("join", arguments, {"d", "attribute"}, 0);
  std::vector<Text> parts;
  for (Value& item : iterate(runtime.budget, input)) {
    if (!p.is_absent(1)) {
      item = AttributePath(runtime.budget, p.at(1)).follow(runtime, std::move(item));
    }
    parts.push_back(to_text(runtime.budget, item));
  }
  const Text separator = p.get(0) ? to_text(runtime.budget, p.at(0)) : Text();
  return join(runtime.budget, separator, parts);
}

Value length_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("length", arguments, {}, 0);
  const auto n = length(runtime.budget, input);
  if (!n) {
    raise("object of type '{}' has no len()", type_name(input));
  }
  return static_cast<std::int64_t>(*n);
}

Value list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("list", arguments, {}, 0);
  return make_list(runtime.budget, iterate(runtime.budget, input));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const bool by_attribute = !arguments.named.empty() && arguments.named[0].first == "attribute";
    if (!by_attribute) {
      raise("map requires a filter argument");
    }
    return map_attribute(runtime, input, arguments);
  }
  const Text& name = name_argument(arguments, 0, "map");
  const Arguments rest = without_first(arguments, 1);
  std::vector<Value> out;
  for (const Value& item : items_if_true(runtime.budget, input)) {
    out.push_back(apply_filter(runtime, name.view(), item, rest));
  }
  return make_iterator(runtime.budget, std::move(out));
}

Value select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return choose(runtime, input, arguments, Keep::kMatching);
}

Value random(Runtime&, const Value&, const Arguments&) {
  raise("the filter random is not supported: the same messages must give the same prompt");
}

Value reject(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return choose(runtime, input, arguments, Keep::kOthers);
}

Value selectattr(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return choose_by_attribute(runtime, input, arguments, Keep::kMatching);
}

Value rejectattr(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return choose_by_attribute(runtime, input, arguments, Keep::kOthers);
}

Value reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("reverse", arguments, {}, 0);
  if (const Text* text = input.text()) {
    return reversed(runtime.budget, *text);
  }
  std::vector<Value> out = iterate(runtime.budget, input);
  std::reverse(out.begin(), out.end());
  return make_iterator(runtime.budget, std::move(out));
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("sum", arguments, {"attribute", "start"}, 0);
  Value total = p.get(1) ? p.at(1) : Value(std::int64_t{0});
  if (total.text()) {
    raise("sum() can't sum strings [use ''.join(seq) instead]");
  }
  for (Value& item : iterate(runtime.budget, input)) {
    if (!p.is_absent(0)) {
      item = AttributePath(runtime.budget, p.at(0)).follow(runtime, std::move(item));
    }
    total = binary(runtime.budget, BinaryOp::kAdd, total, item);
  }
  return total;
}

}  // namespace godwit::chat::jinja::filters
