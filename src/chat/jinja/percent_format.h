// Python's "%s and %d" % values, also the format filter. Marks follow the inserted texts.
#pragma once

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

// `values`: a tuple, a dict for %(name)s, or a single value.
Text percent_format(Budget& budget, const Text& format, const Value& values);

// A number in one of C's formats, or Python's error. `spec` is flags, width and precision.
struct NumberSpec {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  int width = 0;
  int precision = -1;
  char type = 'd';
};
std::string format_integer(std::int64_t value, const NumberSpec& spec);
std::string format_float(Budget& budget, double value, const NumberSpec& spec);

}  // namespace godwit::chat::jinja
