#include "model/weights.h"

#include <cmath>
#include <cstring>

#include "quant/formats.h"

namespace godwit::model {

void WeightFinder::note(std::string message) {
  if (status_) status_ = fail("{}", message);
}

const gguf::Tensor* WeightFinder::find(const std::string& name) {
  const gguf::Tensor* tensor = file_.find_tensor(name);
  if (tensor == nullptr) note(fmt::format("tensor '{}' is missing", name));
  used_.insert(name);
  return tensor;
}

program::WeightRef WeightFinder::declare(const gguf::Tensor& tensor) {
  const program::WeightRef ref =
      builder_.weight(tensor.name, tensor.type, tensor.rows(), tensor.cols());
  if (ref.id == spans_.size()) spans_.push_back(tensor.data);
  return ref;
}

// [rows, cols] of the tensor's bytes: rows of a matrix, or entries of a vector.
program::WeightRef WeightFinder::declare(const gguf::Tensor& tensor, Slice slice, uint64_t rows,
                                         uint64_t cols) {
  const program::WeightRef ref =
      builder_.weight(fmt::format("{}[{}:{}]", tensor.name, slice.first, slice.first + slice.n),
                      tensor.type, rows, cols);
  if (ref.id == spans_.size()) {
    const uint64_t unit = tensor.data.size() / (tensor.rows() == 1 ? tensor.cols() : tensor.rows());
    spans_.push_back(tensor.data.subspan(slice.first * unit, slice.n * unit));
  }
  return ref;
}

const gguf::Tensor* WeightFinder::find_matrix(const std::string& name, uint64_t rows,
                                              uint64_t cols) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->rows() != rows || tensor->cols() != cols) {
    note(fmt::format("tensor '{}' is [{}, {}], expected [{}, {}]", name, tensor->rows(),
                     tensor->cols(), rows, cols));
    return nullptr;
  }
  if (quant::find_format(tensor->type) == nullptr) {
    std::string supported;
    for (const quant::Format& format : quant::formats()) {
      supported += supported.empty() ? "" : " ";
      supported += tensor_type_name(format.type);
    }
    note(fmt::format("tensor '{}' has type {}, which Godwit does not compute with yet; it knows {}",
                     name, tensor_type_name(tensor->type), supported));
    return nullptr;
  }
  return tensor;
}

program::WeightRef WeightFinder::matrix(const std::string& name, uint64_t rows, uint64_t cols) {
  const gguf::Tensor* tensor = find_matrix(name, rows, cols);
  return tensor == nullptr ? program::WeightRef{} : declare(*tensor);
}

program::WeightRef WeightFinder::matrix_rows(const std::string& name, Slice slice, uint64_t rows,
                                             uint64_t cols) {
  const gguf::Tensor* tensor = find_matrix(name, rows, cols);
  return tensor == nullptr ? program::WeightRef{} : declare(*tensor, slice, slice.n, cols);
}

const gguf::Tensor* WeightFinder::find_floats(const std::string& name, uint64_t rows,
                                              uint64_t cols) {
  const gguf::Tensor* tensor = find(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->rows() != rows || tensor->cols() != cols || tensor->type != TensorType::kF32) {
    note(fmt::format("tensor '{}' is [{}, {}] {}, expected [{}, {}] F32", name, tensor->rows(),
                     tensor->cols(), tensor_type_name(tensor->type), rows, cols));
    return nullptr;
  }
  return tensor;
}

const gguf::Tensor* WeightFinder::find_vector(const std::string& name, uint64_t cols) {
  return find_floats(name, 1, cols);
}

program::WeightRef WeightFinder::joined_rows(const std::string& name, uint64_t rows,
                                             uint64_t cols) {
  const gguf::Tensor* tensor = find_floats(name, rows, cols);
  if (tensor == nullptr) return {};
  const program::WeightRef ref = builder_.weight(tensor->name, tensor->type, 1, rows * cols);
  if (ref.id == spans_.size()) spans_.push_back(tensor->data);
  return ref;
}

program::WeightRef WeightFinder::vector(const std::string& name, uint64_t cols) {
  const gguf::Tensor* tensor = find_vector(name, cols);
  return tensor == nullptr ? program::WeightRef{} : declare(*tensor);
}

std::optional<program::WeightRef> WeightFinder::optional_vector(const std::string& name,
                                                                uint64_t cols) {
  if (!has(name)) return std::nullopt;
  return vector(name, cols);
}

std::optional<program::WeightRef> WeightFinder::optional_part(const std::string& name, Slice slice,
                                                              uint64_t cols) {
  if (!has(name)) return std::nullopt;
  const gguf::Tensor* tensor = find_vector(name, cols);
  if (tensor == nullptr) return std::nullopt;
  return declare(*tensor, slice, 1, slice.n);
}

void WeightFinder::ignore_prefix(const std::string& prefix) {
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (tensor.name.starts_with(prefix)) used_.insert(tensor.name);
  }
}

std::vector<std::string> WeightFinder::unused() const {
  std::vector<std::string> names;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (!used_.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

uint64_t WeightFinder::rows_of(const std::string& name) {
  const gguf::Tensor* tensor = find(name);
  return tensor == nullptr ? 0 : tensor->rows();
}

std::vector<float> WeightFinder::values(const std::string& name, uint64_t n) {
  if (!has(name)) return {};
  const gguf::Tensor* tensor = find_vector(name, n);
  if (tensor == nullptr) return {};
  std::vector<float> found(n);
  std::memcpy(found.data(), tensor->data.data(), n * sizeof(float));
  for (const float value : found) {
    if (!std::isfinite(value) || value <= 0.0f) {
      note(fmt::format("tensor '{}' holds {}, expected positive numbers", name, value));
      return {};
    }
  }
  return found;
}

}  // namespace godwit::model
