// How errors travel inside this library: thrown, because an evaluator that recurses through a
// tree would otherwise check a result after every call. They never leave it: template.cpp, the
// only caller from outside, turns them into Error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace godwit::chat::jinja {

// The template does not parse. Lines and columns count from 1, columns in bytes.
struct SyntaxError {
  std::string message;
  int line = 0;
  int column = 0;
};

// Rendering failed; the evaluator knows the line.
struct RenderError {
  std::string message;
};

template <class... Args>
[[noreturn]] void raise(fmt::format_string<Args...> format, Args&&... args) {
  throw RenderError{fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace godwit::chat::jinja
