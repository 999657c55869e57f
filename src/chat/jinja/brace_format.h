// Python's "{} and {name:>8}".format(...). Marks follow the inserted texts.
#pragma once

#include "chat/jinja/runtime.h"

namespace godwit::chat::jinja {

Text brace_format(Runtime& runtime, const Text& format, const Arguments& arguments);

}  // namespace godwit::chat::jinja
