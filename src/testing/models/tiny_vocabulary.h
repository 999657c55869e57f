// The vocabulary of the tiny models: the byte-level alphabet, fillers, <|end|> as its last token.
#pragma once

#include <cstdint>
#include <vector>

#include "gguf/writer.h"

namespace godwit::testing {

inline constexpr uint64_t kTinyVocab = 300;

// Its metadata.
[[nodiscard]] std::vector<gguf::KeyValue> tiny_vocabulary();

}  // namespace godwit::testing
