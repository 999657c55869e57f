// What a template can change or call and what may refer back to itself. Owned by the evaluator.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

struct MacroNode;
struct ForNode;
struct Scope;

// namespace(): attributes that {% set ns.x = ... %} assigns.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// A macro, or the caller() of a call block, with the scope it was written in.
struct Macro {
  const MacroNode* node = nullptr;
  Scope* scope = nullptr;
};

// The variable `loop`; callable where the loop is recursive.
struct Loop {
  const ForNode* node = nullptr;
  Scope* scope = nullptr;    // the scope around the loop
  std::vector<Value> items;  // known so far
  std::size_t index0 = 0;
  std::size_t depth0 = 0;
  std::optional<std::vector<Value>> last_changed;
  // A loop with a filter looks for its next item only when it must, as the filter may ask for what
  // the body assigned. False: there is none. Empty: all items are known.
  std::function<bool()> find_next;

  bool reaches(std::size_t index) {
    while (index >= items.size() && find_next && find_next()) {
    }
    return index < items.size();
  }
  std::size_t length() {
    while (find_next && find_next()) {
    }
    return items.size();
  }
};

struct Cycler {
  std::vector<Value> items;
  std::size_t position = 0;
};

struct Joiner {
  Text separator;
  bool used = false;
};

struct Object {
  std::variant<Namespace, Macro, Loop, Cycler, Joiner> data;
};

}  // namespace godwit::chat::jinja
