#include "testing/source_dir.h"

#include <cstdlib>

namespace godwit::testing {

std::filesystem::path source_dir() {
  const char* elsewhere = std::getenv("GODWIT_SOURCE_DIR");
  return elsewhere != nullptr ? elsewhere : GODWIT_SOURCE_DIR;
}

}  // namespace godwit::testing
