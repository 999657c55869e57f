// A model file that tests of the upper rooms load in milliseconds: one llama layer of random
// matrices in one type, the byte-level alphabet as its vocabulary, <|end|> its last token.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "base/tensor_type.h"
#include "testing/models/tiny_vocabulary.h"

namespace godwit::testing {

struct TinyLlama {
  TensorType type = TensorType::kQ8_0;
  uint64_t seed = 5;
};

[[nodiscard]] Status write_tiny_llama(const std::filesystem::path& path, const TinyLlama& model);

}  // namespace godwit::testing
