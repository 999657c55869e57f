// check(): always on, for programmer errors only. It aborts with the place it stands at, so it
// never guards anything that comes from outside, and stays off the hot path.
#pragma once

#include <source_location>
#include <string_view>

namespace godwit {

[[noreturn]] void check_failed(std::string_view what, std::source_location where);

inline void check(bool condition, std::string_view what,
                  std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]] {
    check_failed(what, where);
  }
}

}  // namespace godwit
