// JSON from outside as a template's values. Every text in it, keys too, is marked as the user's.
#pragma once

#include <string_view>

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

// Throws RenderError: malformed, nested too deep, or an integer beyond 64 bits.
Value parse_json(Budget& budget, std::string_view json);

}  // namespace godwit::chat::jinja
