// Synthetic models: GGUF files with the metadata, tensors and types of a real model of some shape,
// and random weights scaled so that activations and logits stay sane. A function of the options
// alone, byte for byte, on every machine. For benchmarks and tests; the text they speak is noise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/model_shape.h"
#include "apps/synth_tensors.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "gguf/file.h"
#include "gguf/writer.h"

namespace godwit::apps {

// Gives a type to the matrices whose name contains `pattern` as whole parts between dots:
// "output" is output.weight but not attn_output.weight; "blk.1" is layer 1 but not layer 10.
struct TypeRule {
  std::string pattern;
  TensorType type = TensorType::kF32;
};

struct SynthOptions {
  ModelShape shape;
  TensorType matrix_type = TensorType::kQ4_K;
  std::optional<TensorType> embedding_type;  // absent: matrix_type
  std::vector<TypeRule> rules;               // the last that matches wins, over everything above
  uint64_t seed = 0;
};

struct SynthModel {
  std::vector<gguf::KeyValue> metadata;
  std::vector<gguf::TensorSpec> tensors;
  std::vector<SynthContent> contents;  // one per tensor
  ModelShape shape;
  uint64_t seed = 0;

  [[nodiscard]] uint64_t tensor_bytes() const;
};

[[nodiscard]] bool matches(const TypeRule& rule, std::string_view tensor_name);

// Errors: a shape that validate() refuses, columns that are not whole blocks of the type, a type
// without random blocks, a rule that matches no matrix.
[[nodiscard]] Result<SynthModel> plan_synth_model(const SynthOptions& options);

// Streams the model to `path` with constant memory. `progress` may be empty; it gets the bytes of
// tensor data written so far.
[[nodiscard]] Status write_synth_model(const SynthModel& model, const std::filesystem::path& path,
                                       const std::function<void(uint64_t)>& progress);

}  // namespace godwit::apps
