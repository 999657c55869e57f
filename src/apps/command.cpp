#include "apps/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace godwit::apps {

std::string one_line(std::string_view text) {
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
