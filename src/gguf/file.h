// A GGUF model as one object: metadata and tensor directory of one file or of all its split
// shards, mapped read-only. Owns the mappings; spans and pointers it hands out live as long as it
// does. Everything is validated before it is believed (parse.h); nothing here knows what a model
// is. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/tensor_type.h"

namespace godwit::gguf {

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// Elements of an array, widened to one C++ type per kind. Nested arrays are refused by the parser.
struct Array {
  ValueType element = ValueType::kU8;
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>>
      values;

  [[nodiscard]] size_t size() const;
};

// A metadata value: the type in the file, and its content widened.
struct Value {
  ValueType type = ValueType::kU8;
  std::variant<uint64_t, int64_t, double, bool, std::string, Array> content;
};

struct KeyValue {
  std::string key;
  Value value;
};

struct Tensor {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> dims;  // ne[0] (fastest) first, 1 to 4 of them, none is 0
  uint64_t bytes = 0;          // of the data
  uint64_t file_offset = 0;    // of the data, from the start of its shard
  uint32_t shard = 0;
  std::span<const std::byte> data;  // [bytes], mapped

  // Rows of ne[0] weights: the product of all other dims.
  [[nodiscard]] uint64_t rows() const;
  [[nodiscard]] uint64_t cols() const { return dims[0]; }
};

class File {
 public:
  // Opens `path`; of a split model the first shard ("-00001-of-0000N") opens all N, which must lie
  // beside it. Errors: missing, not a regular file, every defect parse.h refuses.
  [[nodiscard]] static Result<File> open(const std::filesystem::path& path);

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] uint32_t version() const;
  [[nodiscard]] uint64_t total_bytes() const;  // of all shards
  [[nodiscard]] size_t n_shards() const;
  [[nodiscard]] std::span<const KeyValue> metadata() const;  // of shard 1, in file order
  [[nodiscard]] std::span<const Tensor> tensors() const;     // of all shards, in file order
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const Tensor* find_tensor(std::string_view name) const;

  // Gives back the memory of what has been read of the tensors so far; who reads them again finds
  // them in the page cache, or on disk. Any thread may be reading meanwhile.
  void discard_read() const;

  // Typed metadata. Absent is nullopt; present with a type that cannot stand for the asked one
  // (a negative integer for get_uint, a string for get_double) is an error naming key and types.
  [[nodiscard]] Result<std::optional<uint64_t>> get_uint(std::string_view key) const;
  [[nodiscard]] Result<std::optional<double>> get_double(std::string_view key) const;
  [[nodiscard]] Result<std::optional<bool>> get_bool(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string_view>> get_string(std::string_view key) const;
  // The views below point into the file object.
  [[nodiscard]] Result<const std::vector<std::string>*> get_strings(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<int64_t>>> get_ints(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::vector<double>>> get_doubles(std::string_view key) const;

  // As above, but absence is an error naming the key.
  [[nodiscard]] Result<uint64_t> need_uint(std::string_view key) const;
  [[nodiscard]] Result<double> need_double(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> need_string(std::string_view key) const;

 private:
  struct Impl;
  explicit File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::gguf
