#include <algorithm>
#include <iterator>
#include <optional>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/merge_sort.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text_operations.h"

namespace godwit::chat::jinja::filters {

namespace {

struct Keyed {
  Value key;
  Value item;
};

Value without_case(Budget& budget, Value value) {
  const Text* text = value.text();
  return text ? Value(change_case(budget, *text, Case::kLower)) : std::move(value);
}

// The key of an item: an attribute of it, or itself, without case where that does not count.
struct KeyRule {
  AttributePath path;
  bool case_sensitive;
  Value otherwise;  // for a missing attribute; None: stays missing

  Value key(Runtime& runtime, const Value& item) const {
    Value found = path.follow(runtime, item);
    if (found.is_undefined() && !otherwise.is_none()) {
      found = otherwise;
    }
    return case_sensitive ? found : without_case(runtime.budget, std::move(found));
  }
};

KeyRule rule(Budget& budget, const Parameters& p, std::size_t case_sensitive,
             std::size_t attribute) {
  return {AttributePath(budget, p.get(attribute) ? p.at(attribute) : Value()),
          p.flag(case_sensitive), Value()};
}

// Stable in both directions, as Python's sort.
void sort_keyed(Budget& budget, std::vector<Keyed>& keyed, bool reverse) {
  const auto before = [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(budget, b.key, a.key, "<") : less(budget, a.key, b.key, "<");
  };
  merge_sort(keyed, before);
}

std::vector<Value> items_of(std::vector<Keyed> keyed) {
  std::vector<Value> out;
  for (Keyed& k : keyed) {
    out.push_back(std::move(k.item));
  }
  return out;
}

Value extreme(Runtime& runtime, const Value& input, const Arguments& arguments, bool largest) {
  const Parameters p(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0);
  const KeyRule by = rule(runtime.budget, p, 0, 1);
  std::optional<Keyed> best;
  for (Value& item : iterate(runtime.budget, input)) {
    Value key = by.key(runtime, item);
    const bool better = !best || (largest ? less(runtime.budget, best->key, key, ">")
                                          : less(runtime.budget, key, best->key, "<"));
    if (better) {
      best = Keyed{std::move(key), std::move(item)};
    }
  }
  return best ? best->item : make_undefined("No aggregated item, sequence was empty.");
}

// Several attributes with commas make a tuple of keys.
std::vector<KeyRule> sort_rules(Runtime& runtime, const Parameters& p) {
  const Text* text = p.get(2) ? p.at(2).text() : nullptr;
  if (!text) {
    return {rule(runtime.budget, p, 1, 2)};
  }
  std::vector<KeyRule> rules;
  const Text comma(",");
  for (const Text& part : split(runtime.budget, *text, &comma, SearchFrom::kLeft, -1)) {
    rules.push_back({AttributePath(runtime.budget, part), p.flag(1), Value()});
  }
  return rules;
}

}  // namespace

Value sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0);
  const std::vector<KeyRule> rules = sort_rules(runtime, p);
  std::vector<Keyed> keyed;
  for (Value& item : iterate(runtime.budget, input)) {
    std::vector<Value> keys;
    for (const KeyRule& by : rules) {
      keys.push_back(by.key(runtime, item));
    }
    keyed.push_back({make_list(runtime.budget, std::move(keys)), std::move(item)});
  }
  sort_keyed(runtime.budget, keyed, p.flag(0));
  return make_list(runtime.budget, items_of(std::move(keyed)));
}

Value dictsort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0);
  const std::string_view by = p.get(1) ? p.text(1).view() : "key";
  if (by != "key" && by != "value") {
    raise("You can only sort by either \"key\" or \"value\"");
  }
  if (input.is_undefined()) {
    raise_undefined(input);
  }
  const Dict* dict = input.dict();
  if (!dict) {
    raise("dictsort() expected a dict, found {}", type_name(input));
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict->entries) {
    const Value& sorted_by = by == "key" ? key : value;
    keyed.push_back({p.flag(0) ? sorted_by : without_case(runtime.budget, sorted_by),
                     make_tuple(runtime.budget, {key, value})});
  }
  sort_keyed(runtime.budget, keyed, p.flag(2));
  return make_list(runtime.budget, items_of(std::move(keyed)));
}

Value groupby(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  Budget& budget = runtime.budget;
  KeyRule by = rule(runtime.budget, p, 2, 0);
  by.otherwise = p.get(1) ? p.at(1) : Value();
  std::vector<Keyed> keyed;
  for (Value& item : iterate(budget, input)) {
    Value key = by.key(runtime, item);
    keyed.push_back({std::move(key), std::move(item)});
  }
  sort_keyed(budget, keyed, false);
  by.case_sensitive = true;  // a group shows its first key as written
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    std::size_t end = begin;
    std::vector<Value> members;
    for (; end < keyed.size() && equal(budget, keyed[end].key, keyed[begin].key); ++end) {
      members.push_back(keyed[end].item);
    }
    auto group = std::make_shared<Sequence>();
    const Value list = make_list(budget, std::move(members));
    const Value tuple = make_tuple(budget, {by.key(runtime, keyed[begin].item), list});
    *group = *tuple.sequence();
    group->is_group = true;
    groups.push_back(SequenceRef(std::move(group)));
    begin = end;
  }
  return make_list(budget, std::move(groups));
}

Value min(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return extreme(runtime, input, arguments, false);
}

Value max(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return extreme(runtime, input, arguments, true);
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("unique", arguments, {"case_sensitive", "attribute"}, 0);
  const KeyRule by = rule(runtime.budget, p, 0, 1);
  std::vector<Value> seen;
  std::vector<Value> out;
  for (Value& item : iterate(runtime.budget, input)) {
    Value key = by.key(runtime, item);
    check_hashable(runtime.budget, key);
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const Value& other) {
      return equal(runtime.budget, other, key);
    });
    if (!known) {
      seen.push_back(std::move(key));
      out.push_back(std::move(item));
    }
  }
  return make_iterator(runtime.budget, std::move(out));
}

}  // namespace godwit::chat::jinja::filters
