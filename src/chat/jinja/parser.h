// Tokens to tree, by jinja2's grammar and precedence. Throws SyntaxError.
#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace godwit::chat::jinja {

Ast parse(std::string_view source);

}  // namespace godwit::chat::jinja
