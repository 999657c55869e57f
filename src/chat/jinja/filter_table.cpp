#include <algorithm>
#include <array>

#include "chat/jinja/filter_functions.h"
#include "chat/jinja/operators.h"

namespace godwit::chat::jinja {

namespace {

Value attr(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters p("attr", arguments, {"name"}, 1);
  const std::string_view name = p.text(0).view();
  // Unlike object.name, never an entry.
  return input.dict() && !has_method(input, name) ? missing_attribute(input, name)
                                                  : get_attribute(runtime, input, name);
}

Value default_value(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters p("default", arguments, {"default_value", "boolean"}, 0);
  const bool absent = input.is_undefined() || (p.flag(1) && !truthy(input));
  return !absent ? input : p.get(0) ? p.at(0) : make_text("");
}

struct FilterRow {
  std::string_view name;
  filters::Function function;
};

constexpr auto kFilters = std::to_array<FilterRow>({
    {"abs", filters::absolute},
    {"attr", attr},
    {"batch", filters::batch},
    {"capitalize", filters::capitalize},
    {"center", filters::center},
    {"count", filters::length_filter},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", filters::dictsort},
    {"e", filters::escape},
    {"escape", filters::escape},
    {"filesizeformat", filters::filesizeformat},
    {"first", filters::first},
    {"float", filters::to_float},
    {"forceescape", filters::forceescape},
    {"format", filters::format},
    {"groupby", filters::groupby},
    {"indent", filters::indent},
    {"int", filters::to_int},
    {"items", filters::items},
    {"join", filters::join_filter},
    {"last", filters::last},
    {"length", filters::length_filter},
    {"list", filters::list},
    {"lower", filters::lower},
    {"map", filters::map},
    {"max", filters::max},
    {"min", filters::min},
    {"pprint", filters::pprint},
    {"random", filters::random},
    {"reject", filters::reject},
    {"rejectattr", filters::rejectattr},
    {"replace", filters::replace_filter},
    {"reverse", filters::reverse},
    {"round", filters::round},
    {"safe", filters::safe},
    {"select", filters::select},
    {"selectattr", filters::selectattr},
    {"slice", filters::slice_filter},
    {"sort", filters::sort},
    {"string", filters::string},
    {"striptags", filters::striptags},
    {"sum", filters::sum},
    {"title", filters::title},
    {"tojson", filters::tojson},
    {"trim", filters::trim},
    {"truncate", filters::truncate},
    {"unique", filters::unique},
    {"upper", filters::upper},
    {"urlencode", filters::urlencode},
    {"urlize", filters::urlize},
    {"wordcount", filters::wordcount},
    {"wordwrap", filters::wordwrap},
    {"xmlattr", filters::xmlattr},
});
constexpr bool by_name(const FilterRow& a, const FilterRow& b) { return a.name < b.name; }
static_assert(std::is_sorted(kFilters.begin(), kFilters.end(), by_name));

const FilterRow* find_filter(std::string_view name) {
  const auto* row =
      std::lower_bound(kFilters.begin(), kFilters.end(), FilterRow{name, nullptr}, by_name);
  return row != kFilters.end() && row->name == name ? row : nullptr;
}

}  // namespace

bool filter_exists(std::string_view name) { return find_filter(name) != nullptr; }

Value apply_filter(Runtime& runtime, std::string_view name, const Value& input,
                   const Arguments& arguments) {
  runtime.budget.step();
  const Budget::Level nested(runtime.budget);
  const FilterRow* row = find_filter(name);
  if (!row) {
    raise("No filter named {}.", quoted(name));
  }
  return row->function(runtime, input, arguments);
}

}  // namespace godwit::chat::jinja
