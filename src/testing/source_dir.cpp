#include "testing/source_dir.h"

namespace godwit::testing {

std::filesystem::path source_dir() { return GODWIT_SOURCE_DIR; }

}  // namespace godwit::testing
