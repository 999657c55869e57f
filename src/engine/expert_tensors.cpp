#include "engine/expert_tensors.h"

#include <algorithm>
#include <vector>

#include "program/access.h"

namespace godwit::engine {
namespace {

// The tensor that holds exactly this matrix of all experts, or nullptr.
const gguf::Tensor* whole_tensor(const gguf::File& file, const program::Program& program,
                                 const program::ExpertMatrix& matrix) {
  const gguf::Tensor* tensor = file.find_tensor(program.weights[matrix.weight.id].name);
  if (tensor == nullptr || tensor->dims.size() != 3 || tensor->dims[2] != matrix.n_experts ||
      tensor->rows() != matrix.weight.rows) {
    return nullptr;
  }
  return tensor;
}

}  // namespace

Result<experts::ExpertSource> find_experts(const gguf::File& file,
                                           const program::Program& program) {
  std::vector<experts::LayerTensors> layers;
  program::for_each_step(program, [&](const program::Step& step) {
    const auto matrices = program::expert_matrices(step.operation);
    if (std::ranges::all_of(matrices, [](const auto* matrix) { return matrix == nullptr; })) return;
    experts::LayerTensors layer;
    bool whole = true;
    for (size_t part = 0; part < matrices.size(); ++part) {
      if (matrices[part] == nullptr) continue;
      layer.parts[part] = whole_tensor(file, program, *matrices[part]);
      whole = whole && layer.parts[part] != nullptr;
    }
    layers.push_back(whole ? layer : experts::LayerTensors{});
  });
  return experts::ExpertSource::create(file, layers);
}

uint64_t expert_file_bytes(const experts::ExpertSource& source) {
  uint64_t sum = 0;
  for (uint32_t layer = 0; layer < source.n_layers(); ++layer) {
    if (source.n_experts(layer) > 0) sum += source.n_experts(layer) * source.file_bytes(layer);
  }
  return sum;
}

}  // namespace godwit::engine
