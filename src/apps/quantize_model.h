// What `godwit quantize` does, without its command line: decides the type of every tensor of a
// GGUF model, and writes the model with those types. Streams: memory is bounded by a few million
// weights, whatever the size of model and tensors. Prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "apps/quantize_mix.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "gguf/file.h"

namespace godwit::apps {

// "attn_v=q8_0": tensors whose name contains a match of the regular expression (ECMAScript) get
// the type.
struct TensorTypeRule {
  std::string text;
  std::regex pattern;
  TensorType type = TensorType::kF32;
};

// Errors: no '=', an expression that does not compile, a type that cannot be written.
[[nodiscard]] Result<TensorTypeRule> parse_tensor_type_rule(std::string_view text);
// A type that Godwit can write, by name. Errors list those there are.
[[nodiscard]] Result<TensorType> parse_encodable_type(std::string_view flag, std::string_view name);

enum class MixMode { kMixed, kPure };  // kPure: one type for all matrices
enum class OutputTensor { kQuantise, kLeave };
enum class Requantise { kRefuse, kAllow };

struct QuantizeOptions {
  FileType file_type;
  MixMode mode = MixMode::kMixed;
  OutputTensor output = OutputTensor::kQuantise;
  Requantise requantise = Requantise::kRefuse;
  std::optional<TensorType> output_type;     // of output.weight
  std::optional<TensorType> embedding_type;  // of token_embd.weight
  std::vector<TensorTypeRule> rules;         // the first match counts
};

struct PlannedTensor {
  const gguf::Tensor* source = nullptr;  // lives as long as the file
  TensorType type = TensorType::kF32;
  // What the mix asked for, where its blocks do not divide the rows.
  std::optional<TensorType> unfitting;

  [[nodiscard]] uint64_t weights() const { return source->rows() * source->cols(); }
  [[nodiscard]] uint64_t bytes() const { return source->rows() * row_bytes(type, source->cols()); }
};

struct QuantizePlan {
  std::vector<PlannedTensor> tensors;  // in file order
  uint32_t file_type = 0;

  [[nodiscard]] uint64_t bytes_before() const;
  [[nodiscard]] uint64_t bytes_after() const;
  [[nodiscard]] double bits_per_weight() const;
};

// Errors: a tensor that cannot be decoded, or is quantised already and must not be again; counts
// in the metadata that are missing or of the wrong type.
[[nodiscard]] Result<QuantizePlan> plan_quantize(const gguf::File& file,
                                                 const QuantizeOptions& options);

enum class Measure { kNothing, kError };

struct QuantizeRun {
  size_t n_threads = 1;
  Measure measure = Measure::kNothing;
  // Called after each tensor, with its RMS error over the RMS of its weights where measured.
  std::function<void(size_t index, std::optional<double> error)> wrote;
  bool (*interrupted)() = nullptr;
};

// Writes the model to `path` under a temporary name and renames it when it is complete. Errors:
// weights that are not finite or too large for their type (with tensor and index), a full disk,
// an interruption.
[[nodiscard]] Status write_quantized(const gguf::File& file, const QuantizePlan& plan,
                                     const QuantizeRun& run, const std::filesystem::path& path);

}  // namespace godwit::apps
