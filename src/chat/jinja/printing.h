// Values as text, to the byte as Python prints them: str() for output and ~, repr() inside
// containers, json.dumps for tojson. Marks follow the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

// repr of a float: the shortest digits that read back the same.
std::string float_repr(double value);

// Python's str().
void append_str(Budget& budget, TextBuilder& out, const Value& value);
Text to_text(Budget& budget, const Value& value);

void append_repr(Budget& budget, TextBuilder& out, const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<Text> indent;  // one level of it; none: everything on one line
  Text item_separator;
  Text key_separator;
  bool sort_keys = false;
};
Text to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace godwit::chat::jinja
