// The architectures Godwit knows, one row each, and the way from a file to a Program. To add one:
// write arch/<name>.cpp, declare its function in arch/architectures.h, add its row in registry.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "program/program.h"

namespace godwit::model {

struct Model {
  program::Program program;
  // Bytes of each weight in file layout, indexed like program.weights; they live as long as the
  // file.
  std::vector<std::span<const std::byte>> weights;
};

struct BuildSettings {
  // Positions that sequences will reach, by which LongRoPE chooses its factors; 0: the model's own
  // context.
  uint64_t n_positions = 0;
  // Whether to build the head that predicts further tokens (Program::mtp), where the file has one.
  bool with_mtp = false;
};

// Errors: a file that is no language model Godwit runs (which, and why not), missing, ill-shaped or
// foreign tensors, unsupported types, a program that does not validate.
[[nodiscard]] Result<Model> build_model(const gguf::File& file, const BuildSettings& settings = {});

[[nodiscard]] std::vector<std::string_view> architecture_names();

}  // namespace godwit::model
