// The tiny random models of tests/fixtures/transformers: one file each, found by looking, so that a
// new one is tested without being named.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/source_dir.h"

namespace godwit::testing {

inline std::filesystem::path transformers_fixture(const std::string& file_name) {
  return source_dir() / "tests/fixtures/transformers" / file_name;
}

// Names without extension, in order.
inline std::vector<std::string> transformers_models() {
  std::vector<std::string> models;
  for (const auto& entry : std::filesystem::directory_iterator(transformers_fixture(""))) {
    if (entry.path().extension() == ".gguf") models.push_back(entry.path().stem().string());
  }
  std::ranges::sort(models);
  return models;
}

}  // namespace godwit::testing
