#include <algorithm>
#include <array>
#include <ctime>

#include "chat/jinja/evaluator.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"

namespace godwit::chat::jinja {

Value Evaluator::call(const Value& callee, Arguments arguments) {
  const Budget::Level level(budget_);
  budget_.step();
  if (const auto* method = callee.get<MethodRef>()) {
    return call_method(runtime_, **method, arguments);
  }
  if (const auto* builtin = callee.get<Builtin>()) {
    return call_builtin(*builtin, arguments);
  }
  if (Object* const* object = callee.get<Object*>()) {
    return call_object(**object, std::move(arguments));
  }
  if (callee.is_undefined()) {
    raise_undefined(callee);
  }
  raise("'{}' object is not callable", type_name(callee));
}

Value Evaluator::call_object(Object& object, Arguments arguments) {
  if (const auto* macro = std::get_if<Macro>(&object.data)) {
    return call_macro(*macro, std::move(arguments));
  }
  if (auto* joiner = std::get_if<Joiner>(&object.data)) {
    const Parameters p("joiner", arguments, {}, 0);
    return std::exchange(joiner->used, true) ? joiner->separator : Text();
  }
  const auto* loop = std::get_if<Loop>(&object.data);
  if (!loop) {
    raise("'{}' object is not callable", type_name(Value(&object)));
  }
  const Parameters p("loop", arguments, {"iterable"}, 1);
  if (!loop->node->recursive) {
    raise("The loop must have the 'recursive' marker to be called recursively.");
  }
  Capture capture(*this);
  const InnerScope scope(*this, loop->scope);
  run_loop(*loop->node, p.at(0), loop->depth0 + 1);
  return capture.text();
}

Value Evaluator::call_macro(const Macro& macro, Arguments arguments) {
  Capture capture(*this);
  const InnerScope scope(*this, macro.scope);
  bind_parameters(*macro.node, arguments);
  execute(macro.node->body);
  return capture.text();
}

void Evaluator::bind_parameters(const MacroNode& macro, Arguments& arguments) {
  const std::size_t n = macro.parameters.size();
  std::vector<std::optional<Value>> given(n);
  std::vector<Value> more;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < n) {
      given[i] = std::move(arguments.positional[i]);
    } else if (macro.takes_varargs) {
      more.push_back(std::move(arguments.positional[i]));
    } else {
      raise("macro '{}' takes not more than {} argument(s)", macro.name, n);
    }
  }
  Value caller = make_undefined("No caller defined");
  std::vector<std::pair<Value, Value>> more_named;
  for (auto& [name, value] : arguments.named) {
    std::size_t i = 0;
    while (i < n && (macro.parameters[i] != name || given[i])) {
      ++i;
    }
    if (i < n) {
      given[i] = std::move(value);
    } else if (name == "caller" && macro.takes_caller) {
      caller = std::move(value);
    } else if (macro.takes_kwargs) {
      set_entry(budget_, more_named, make_text(name), std::move(value));
    } else {
      raise("macro '{}' takes no keyword argument {}", macro.name, quoted(name));
    }
  }
  if (macro.takes_caller) {
    set("caller", std::move(caller));
  }
  if (macro.takes_varargs) {
    set("varargs", make_tuple(budget_, std::move(more)));
  }
  if (macro.takes_kwargs) {
    set("kwargs", make_dict(budget_, std::move(more_named)));
  }
  const std::size_t first_default = n - macro.defaults.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (!given[i]) {  // a default may use the parameters before it
      given[i] = i >= first_default ? evaluate(*macro.defaults[i - first_default])
                                    : make_undefined(fmt::format("parameter {} was not provided",
                                                                 quoted(macro.parameters[i])));
    }
    set(macro.parameters[i], *std::move(given[i]));
  }
}

Value Evaluator::call_builtin(Builtin builtin, const Arguments& arguments) {
  switch (builtin) {
    case Builtin::kRange:
      return make_range(arguments);
    case Builtin::kDict:
      return make_dict_of(arguments);
    case Builtin::kNamespace:
      return make_namespace(arguments);
    case Builtin::kCycler:
      if (arguments.positional.empty() || !arguments.named.empty()) {
        raise("at least one item has to be provided");
      }
      return make_object(Object{Cycler{.items = arguments.positional, .position = 0}});
    case Builtin::kJoiner: {
      const Parameters p("joiner", arguments, {"sep"}, 0);
      return make_object(
          Object{Joiner{.separator = p.get(0) ? p.text(0) : Text(", "), .used = false}});
    }
    case Builtin::kRaiseException: {
      const Parameters p("raise_exception", arguments, {"message"}, 1);
      throw RenderError{std::string(to_text(budget_, p.at(0)).view())};
    }
    case Builtin::kStrftimeNow:
      return strftime_now(arguments);
  }
  return Value();
}

Value Evaluator::make_range(const Arguments& arguments) {
  const Parameters p("range", arguments, {"", "", ""}, 1);
  const bool one = !p.get(1);
  const std::int64_t start = one ? 0 : p.integer(0, 0);
  const std::int64_t stop = one ? p.integer(0, 0) : p.integer(1, 0);
  const std::int64_t step = p.integer(2, 1);
  if (step == 0) {
    raise("range() arg 3 must not be zero");
  }
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() >= static_cast<std::size_t>(kMaxRange)) {
      raise("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) {
      break;
    }
  }
  const Value value = make_sequence(budget_, SequenceKind::kRange, std::move(items));
  auto range = std::make_shared<Sequence>(*value.sequence());
  range->start = start;
  range->stop = stop;
  range->step = step;
  return SequenceRef(std::move(range));
}

Value Evaluator::make_dict_of(const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1) {
    raise("dict expected at most 1 argument, got {}", arguments.positional.size());
  }
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (const Dict* dict = from.dict()) {
      budget_.allocate(dict->entries.size() * 2 * sizeof(Value));
      entries = dict->entries;
    } else {
      for (const Value& item : iterate(budget_, from)) {
        std::vector<Value> pair = iterate(budget_, item);
        if (pair.size() != 2) {
          raise("dictionary update sequence element has length {}; 2 is required", pair.size());
        }
        set_entry(budget_, entries, pair[0], std::move(pair[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    set_entry(budget_, entries, make_text(name), value);
  }
  return make_dict(budget_, std::move(entries));
}

Value Evaluator::make_namespace(const Arguments& arguments) {
  Namespace ns;
  const Value from = make_dict_of(arguments);
  for (const auto& [key, value] : from.dict()->entries) {
    ns.attributes.emplace_back(to_text(budget_, key).view(), value);
  }
  return make_object(Object{std::move(ns)});
}

// Only the letters that Python documents reach the C library, one at a time.
Value Evaluator::strftime_now(const Arguments& arguments) {
  constexpr std::string_view kLetters = "aAbBcdHIjmMpSUwWxXyYZ%DeFhnRtTuVGgClrszP";
  const Parameters p("strftime_now", arguments, {"format"}, 1);
  const std::time_t seconds = static_cast<std::time_t>(now_);
  std::tm local{};
  if (!localtime_r(&seconds, &local)) {
    raise("strftime_now() was given a time that has no calendar date");
  }
  const Text& format = p.text(0);
  const std::string_view view = format.view();
  TextBuilder out(budget_);
  for (std::size_t at = 0; at < view.size();) {
    const std::size_t percent = std::min(view.find('%', at), view.size());
    out.append(format, at, percent);
    at = percent;
    if (at == view.size()) {
      break;
    }
    budget_.step(8);
    const bool dash = view.substr(at + 1, 1) == "-";  // no padding
    const std::string_view letter = view.substr(at + 1 + (dash ? 1 : 0), 1);
    std::size_t n = 0;
    std::array<char, 128> buffer{};
    if (!letter.empty() && kLetters.find(letter) != std::string_view::npos) {
      const std::string one = fmt::format("%{}{}", dash ? "-" : "", letter);
      n = std::strftime(buffer.data(), buffer.size(), one.c_str(), &local);
      at += one.size();
    } else {
      buffer[n++] = view[at++];
    }
    out.append_plain(std::string_view(buffer.data(), n));
  }
  return out.finish();
}

}  // namespace godwit::chat::jinja
