// The head of one GGUF file, from bytes that nobody vouches for: magic, counts, metadata, tensor
// directory. A pure function without file access, so that it can be fuzzed. Every count, length
// and offset is checked against the bytes that are there before anything is allocated or believed;
// a header that comes back has tensors that lie inside the file, aligned and apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace godwit::gguf {

inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint64_t kMinAlignment = 8;  // the widest element read in place
inline constexpr uint64_t kMaxAlignment = 1u << 20;
inline constexpr uint64_t kMaxTensorNameBytes = 64;
inline constexpr uint64_t kMaxKeyBytes = 65535;
inline constexpr uint32_t kMaxDims = 4;
// Above any real model (a vocabulary of 256 K takes 10 MB), and a bound for memory: a hostile file
// costs at most 0.5 GiB in array elements and as much in strings.
inline constexpr uint64_t kMaxHeaderBytes = 128u << 20;
inline constexpr uint64_t kMaxArrayElements = 16u << 20;  // of all arrays together

struct HeaderSource {
  std::span<const std::byte> bytes;  // the file from its first byte, at least the whole header
  uint64_t file_bytes = 0;           // size of the file; >= bytes.size()
  std::string_view name;             // for messages
};

struct Header {
  uint32_t version = 3;
  uint64_t alignment = kDefaultAlignment;
  uint64_t data_offset = 0;  // of the tensor data section, from the start of the file
  std::vector<KeyValue> metadata;
  std::vector<Tensor> tensors;  // `data` is empty and `shard` 0: the caller knows the mapping
};

[[nodiscard]] Result<Header> parse_header(const HeaderSource& source);

// Bytes of a tensor of this type and shape. Errors: no dims or more than four, a dim of 0, a row
// that is not whole blocks, more elements or bytes than 2^63 - 1.
[[nodiscard]] Result<uint64_t> tensor_bytes(TensorType type, std::span<const uint64_t> dims);

}  // namespace godwit::gguf
