#include "apps/check/checkout_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "testing/source_dir.h"

namespace godwit::apps {

namespace fs = std::filesystem;

Result<std::string> checkout_text() {
  const fs::path root = testing::source_dir();
  std::vector<fs::path> files;
  for (const char* folder : {"docs", "src"}) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder, error)) {
      const std::string ending = entry.path().extension().string();
      if (ending == ".md" || ending == ".h" || ending == ".cpp") found.push_back(entry.path());
    }
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  std::string text;
  for (const fs::path& file : files) {
    std::ostringstream content;
    content << std::ifstream(file).rdbuf();
    text += content.str();
  }
  if (text.empty()) {
    return fail("no checkout at {}; give a text with --text", root.string());
  }
  return text;
}

}  // namespace godwit::apps
