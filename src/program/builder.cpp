#include "program/builder.h"

namespace godwit::program {

std::string_view kind_name(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const Embed&) { return std::string_view("Embed"); },
                        [](const Norm&) { return std::string_view("Norm"); },
                        [](const NormProject&) { return std::string_view("NormProject"); },
                        [](const Attend&) { return std::string_view("Attend"); },
                        [](const Recurrent&) { return std::string_view("Recurrent"); },
                        [](const ProjectAdd&) { return std::string_view("ProjectAdd"); },
                        [](const GatedUp&) { return std::string_view("GatedUp"); },
                        [](const Route&) { return std::string_view("Route"); },
                        [](const ExpertGatedUp&) { return std::string_view("ExpertGatedUp"); },
                        [](const ExpertDownAdd&) { return std::string_view("ExpertDownAdd"); },
                        [](const Output&) { return std::string_view("Output"); },
                    },
                    operation);
}

WeightRef ProgramBuilder::weight(std::string_view name, TensorType type, uint64_t rows,
                                 uint64_t cols) {
  auto& weights = program_.weights;
  uint32_t id = 0;
  while (id < weights.size() && weights[id].name != name) ++id;
  if (id == weights.size()) weights.push_back({std::string(name), type, rows, cols});
  return {.id = id, .type = type, .rows = rows, .cols = cols};
}

BufferId ProgramBuilder::buffer(std::string_view name, uint64_t width) {
  program_.buffers.push_back({std::string(name), width});
  return {static_cast<uint32_t>(program_.buffers.size() - 1)};
}

KvRef ProgramBuilder::kv(uint32_t n_kv_heads, uint32_t head_dim) {
  program_.kvs.push_back({n_kv_heads, head_dim});
  return {static_cast<uint32_t>(program_.kvs.size() - 1)};
}

RopeRef ProgramBuilder::rope(Rope rope) {
  program_.ropes.push_back(std::move(rope));
  return {static_cast<uint32_t>(program_.ropes.size() - 1)};
}

StateRef ProgramBuilder::state(State state) {
  program_.states.push_back(state);
  return {static_cast<uint32_t>(program_.states.size() - 1)};
}

void ProgramBuilder::step(std::string_view label, Operation operation) {
  std::vector<Step>& steps = list_ == StepList::kMain ? program_.main : program_.mtp;
  steps.push_back({scope_ + std::string(label), std::move(operation)});
}

}  // namespace godwit::program
