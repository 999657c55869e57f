#include "apps/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace godwit::apps {

std::string one_line(std::string_view text) {
  constexpr size_t kHead = 700;
  constexpr size_t kTail = 200;
  if (text.size() > kHead + kTail) {
    return one_line(text.substr(0, kHead)) + " ... " + one_line(text.substr(text.size() - kTail));
  }
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

void finish(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "error: %s\n", one_line(status.error().message).c_str());
  throw CLI::RuntimeError(1);
}

}  // namespace godwit::apps
