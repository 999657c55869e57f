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

// Errors: an unknown architecture (the known ones are listed), missing or ill-shaped weights,
// unsupported types, a program that does not validate.
[[nodiscard]] Result<Model> build_model(const gguf::File& file);

[[nodiscard]] std::vector<std::string_view> architecture_names();

}  // namespace godwit::model
