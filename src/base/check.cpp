#include "base/check.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace godwit {

void check_failed(std::string_view what, std::source_location where) {
  fmt::print(stderr, "godwit: internal error at {}:{} ({}): {}\n", where.file_name(), where.line(),
             where.function_name(), what);
  std::abort();
}

}  // namespace godwit
