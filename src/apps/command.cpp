#include "apps/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace godwit::apps {

void finish(const Status& status) {
  if (status) return;
  fmt::print(stderr, "error: {}\n", status.error().message);
  throw CLI::RuntimeError(1);
}

}  // namespace godwit::apps
