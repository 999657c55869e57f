// The tiny random models of tests/fixtures/transformers and transformers_moe: one file each, found
// by looking, so that a new one is tested without being named.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/source_dir.h"

namespace godwit::testing {

inline std::vector<std::filesystem::path> transformers_folders() {
  const std::filesystem::path fixtures = source_dir() / "tests/fixtures";
  return {fixtures / "transformers", fixtures / "transformers_moe"};
}

inline std::filesystem::path transformers_fixture(const std::string& file_name) {
  for (const std::filesystem::path& folder : transformers_folders()) {
    if (std::filesystem::exists(folder / file_name)) return folder / file_name;
  }
  return file_name;
}

// Names without extension, in order.
inline std::vector<std::string> transformers_models() {
  std::vector<std::string> models;
  for (const std::filesystem::path& folder : transformers_folders()) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().stem().string();
      if (entry.path().extension() == ".gguf") models.push_back(name);
    }
  }
  std::ranges::sort(models);
  return models;
}

}  // namespace godwit::testing
