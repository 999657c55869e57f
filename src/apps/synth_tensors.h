// The tensors of a synthetic model: names, shapes and what their weights are drawn from, in file
// order, as the files of the architecture have them. Types of matrices are set by synth_model,
// which alone calls this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/model_shape.h"
#include "gguf/writer.h"

namespace godwit::apps {

// What the weights of a tensor are drawn from, or are. All but kMatrix are F32 in every file.
enum class SynthContent {
  kMatrix,
  kFloatMatrix,  // routers, convolutions
  kNorm,
  kBias,
  kRopeFactors,
  kDecay,  // of the gated delta rule: below zero, how fast a head forgets
  kStep,   // its bias, of which softplus is taken
};

struct SynthTensors {
  std::vector<gguf::TensorSpec> tensors;
  std::vector<SynthContent> contents;  // one per tensor

  // F32, to begin with.
  void add(std::string name, SynthContent content, std::vector<uint64_t> dims);
};

// `shape` is one that validate() accepts.
[[nodiscard]] SynthTensors synth_tensors(const ModelShape& shape);

}  // namespace godwit::apps
