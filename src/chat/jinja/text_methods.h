// Python's methods of str, called from templates: "text".strip() and its like.
#pragma once

#include <string_view>

#include "chat/jinja/runtime.h"

namespace godwit::chat::jinja {

bool text_method_exists(std::string_view name);
Value call_text_method(Runtime& runtime, const Text& self, std::string_view name,
                       const Arguments& arguments);

}  // namespace godwit::chat::jinja
