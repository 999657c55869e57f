// Finds an architecture's weights in a file: checks name, shape and type, declares each in the
// Program and keeps the span of its bytes beside its id.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
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
  // Rows [first, first + n) of a matrix of `rows` rows, as a weight of its own: the parts of a
  // fused projection.
  struct Slice {
    uint64_t first = 0;
    uint64_t n = 0;
  };
  program::WeightRef matrix_rows(const std::string& name, Slice slice, uint64_t rows,
                                 uint64_t cols);
  // [cols] f32, as norms and biases are.
  program::WeightRef vector(const std::string& name, uint64_t cols);
  std::optional<program::WeightRef> optional_vector(const std::string& name, uint64_t cols);
  // The rows of [rows, cols] f32 one after the other, as one vector: what each expert adds.
  program::WeightRef joined_rows(const std::string& name, uint64_t rows, uint64_t cols);
  // Entries of a vector of `cols`, as a vector of its own; nothing where the vector is absent.
  std::optional<program::WeightRef> optional_part(const std::string& name, Slice slice,
                                                  uint64_t cols);
  [[nodiscard]] bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
  // Rows of a matrix whose number of rows the metadata does not tell (the vocabulary).
  uint64_t rows_of(const std::string& name);
  // Values of an f32 vector used while building (rope factors); empty if absent.
  std::vector<float> values(const std::string& name, uint64_t n);

  // Tensors that nothing has asked for; a file that carries one is a variant of its architecture.
  // Whoever knows that a tensor does not matter says so.
  void ignore_prefix(const std::string& prefix);
  // Remembers a defect that is not of one tensor.
  void refuse(std::string message) { note(std::move(message)); }
  [[nodiscard]] std::vector<std::string> unused() const;

  [[nodiscard]] const Status& status() const { return status_; }
  // Bytes of each weight, indexed like Program::weights; spans into the file's mapping.
  [[nodiscard]] std::vector<std::span<const std::byte>> take_spans() { return std::move(spans_); }

 private:
  void note(std::string message);
  const gguf::Tensor* find(const std::string& name);
  const gguf::Tensor* find_matrix(const std::string& name, uint64_t rows, uint64_t cols);
  const gguf::Tensor* find_floats(const std::string& name, uint64_t rows, uint64_t cols);
  const gguf::Tensor* find_vector(const std::string& name, uint64_t cols);
  program::WeightRef declare(const gguf::Tensor& tensor);
  program::WeightRef declare(const gguf::Tensor& tensor, Slice slice, uint64_t rows, uint64_t cols);

  const gguf::File& file_;
  program::ProgramBuilder& builder_;
  std::vector<std::span<const std::byte>> spans_;
  std::unordered_set<std::string> used_;
  Status status_;
};

}  // namespace godwit::model
