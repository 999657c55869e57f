// Writes a Program: declares weights and buffers, appends steps. An architecture file reads as the
// model's forward pass; shapes are checked afterwards, by validate.h, in one place.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "program/program.h"

namespace godwit::program {

class ProgramBuilder {
 public:
  // Weights are shared by name: asking twice gives the same id.
  WeightRef weight(std::string_view name, TensorType type, uint64_t rows, uint64_t cols);
  BufferId buffer(std::string_view name, uint64_t width);
  KvRef kv(uint32_t n_kv_heads, uint32_t head_dim);
  RopeRef rope(Rope rope);
  StateRef state(State state);

  // Labels of the steps that follow start with this ("blk.3."); "" for none.
  void scope(std::string prefix) { scope_ = std::move(prefix); }
  // Where they go.
  void list(StepList list) { list_ = list; }
  void step(std::string_view label, Operation operation);

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] Program finish() && { return std::move(program_); }

 private:
  Program program_;
  std::string scope_;
  StepList list_ = StepList::kMain;
};

}  // namespace godwit::program
