// Writes GGUF v3 files: metadata first, then a tensor directory, then tensor data streamed in
// order, so that a file larger than memory can be written. Used by synth, expand and the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor_type.h"
#include "gguf/file.h"

namespace godwit::gguf {

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> dims;  // ne[0] first
};

class Writer {
 public:
  // Writes header, metadata and directory to `path` (a temporary beside it until finish()).
  [[nodiscard]] static Result<Writer> create(const std::filesystem::path& path,
                                             std::span<const KeyValue> metadata,
                                             std::span<const TensorSpec> tensors);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();  // without finish(), removes the temporary

  // Appends bytes to the tensor data section; tensors follow each other in directory order and the
  // writer pads between them. Errors: disk full, more bytes than the directory promises.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Checks that every promised byte came, syncs, and renames into place.
  [[nodiscard]] Status finish();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Metadata values by C++ type, for callers that build a list by hand.
[[nodiscard]] KeyValue make_uint(std::string key, uint32_t value);
[[nodiscard]] KeyValue make_float(std::string key, float value);
[[nodiscard]] KeyValue make_bool(std::string key, bool value);
[[nodiscard]] KeyValue make_string(std::string key, std::string value);
[[nodiscard]] KeyValue make_strings(std::string key, std::vector<std::string> values);
[[nodiscard]] KeyValue make_ints(std::string key, std::vector<int64_t> values);   // as i32
[[nodiscard]] KeyValue make_floats(std::string key, std::vector<double> values);  // as f32

}  // namespace godwit::gguf
