// Result<T>: a value, or an Error that says what was expected, what was found and where.
// For what can be wrong with the world (files, requests, memory). For what can be wrong
// with us there is check.h. Errors are values: nothing here prints or throws.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace godwit {

struct [[nodiscard]] Error {
  std::string message;

  // The same error seen from one level up: "context: message".
  Error with(std::string_view context) && {
    message = fmt::format("{}: {}", context, message);
    return std::move(*this);
  }
};

template <class T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

// fail("gguf: expected {}, found {}", ...) converts to any Result<T>.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace godwit
