// Where the checkout lies, for tests that read fixtures; where the variable GODWIT_SOURCE_DIR says,
// for tests that were carried to another machine. In one object file only, so that compiler
// caches serve every other one from any folder.
#pragma once

#include <filesystem>

namespace godwit::testing {

[[nodiscard]] std::filesystem::path source_dir();

}  // namespace godwit::testing
