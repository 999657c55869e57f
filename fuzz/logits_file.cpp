// A file of saved logits: whatever the bytes, an error of one line, or tokens inside the
// vocabulary and rows that can all be read.
#include "apps/logits_file.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "apps/command.h"
#include "checks.h"

using namespace godwit;  // NOLINT: one file, the names of one library

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = apps::LogitsFile::parse(std::as_bytes(std::span(data, size)));
  if (!good(file)) return 0;
  const apps::LogitsShape& shape = file->shape();
  std::vector<float> values(shape.n_vocab);
  for (size_t chunk = 0; chunk < shape.n_chunks; ++chunk) {
    for (const TokenId token : file->tokens(chunk)) {
      require(token.value >= 0 && static_cast<uint32_t>(token.value) < shape.n_vocab);
    }
    for (size_t row = 0; row < shape.rows_per_chunk(); ++row) {
      const auto packed = file->row(chunk, row);
      if (!good(packed)) continue;
      packed->unpack(values);
      for (const float value : values) require(std::isfinite(value) && value < 0.1f);
    }
  }
  return 0;
}
