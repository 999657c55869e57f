// Finds an architecture's weights in a file: checks name, shape and type, declares each in the
// Program and keeps the span of its bytes beside its id.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "program/builder.h"

namespace godwit::model {

class WeightFinder {
 public:
  WeightFinder(const gguf::File& file, program::ProgramBuilder& builder)
      : file_(file), builder_(builder) {}

  // [rows, cols], any type Godwit computes with. The first defect is remembered in status().
  program::WeightRef matrix(const std::string& name, uint64_t rows, uint64_t cols);
  // [cols] f32, as norms and biases are.
  program::WeightRef vector(const std::string& name, uint64_t cols);
  std::optional<program::WeightRef> optional_vector(const std::string& name, uint64_t cols);
  [[nodiscard]] bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
  // Rows of a matrix whose number of rows the metadata does not tell (the vocabulary).
  uint64_t rows_of(const std::string& name);
  // Values of an f32 vector used while building (rope factors); empty if absent.
  std::vector<float> values(const std::string& name, uint64_t n);

  [[nodiscard]] const Status& status() const { return status_; }
  // Bytes of each weight, indexed like Program::weights; spans into the file's mapping.
  [[nodiscard]] std::vector<std::span<const std::byte>> take_spans() { return std::move(spans_); }

 private:
  void note(std::string message);
  const gguf::Tensor* find(const std::string& name);
  program::WeightRef declare(const gguf::Tensor& tensor);

  const gguf::File& file_;
  program::ProgramBuilder& builder_;
  std::vector<std::span<const std::byte>> spans_;
  Status status_;
};

}  // namespace godwit::model
