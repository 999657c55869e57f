// Writes the cases of testing/gguf_cases.h into a folder, one file each: the seed corpus of the
// gguf target. Files of other names in the folder (found by fuzzing) stay.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "testing/gguf_cases.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  for (const godwit::testing::GgufCase& c : godwit::testing::gguf_cases()) {
    std::ofstream out(folder / c.name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(c.bytes.data()),
              static_cast<std::streamsize>(c.bytes.size()));
    if (!out) {
      std::fprintf(stderr, "cannot write %s\n", (folder / c.name).c_str());
      return 1;
    }
  }
  return 0;
}
