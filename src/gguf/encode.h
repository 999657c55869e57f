// The head of a GGUF v3 file as bytes: the inverse of parse.h. Used by the writer; pure, so that
// what it makes can be parsed back before a file is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "gguf/writer.h"

namespace godwit::gguf {

struct EncodedHeader {
  std::vector<std::byte> bytes;  // up to the data section, padding included
  uint64_t alignment = 0;
  std::vector<uint64_t> tensor_bytes;  // of each tensor's data, without padding
};

// Errors: everything parse.h refuses, and values whose C++ content does not fit their type.
[[nodiscard]] Result<EncodedHeader> encode_header(std::span<const KeyValue> metadata,
                                                  std::span<const TensorSpec> tensors);

}  // namespace godwit::gguf
